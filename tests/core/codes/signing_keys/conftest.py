"""The commands on signing keys, and what running Cores publish."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from soundmark_sdk import read_key_set, verify_answer
from support.api.core_client import Api
from support.api.core_settings import jobs_settings
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.core.features.codes.signing_keys import service
from soundmark.core.live.keyring import LiveKeyring
from soundmark.core.wiring import make_context
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret

WRITE_LOCK = "LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE"


class SeenEntropy(SystemEntropy):
    """Real randomness that records what was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[bytes] = []

    def take(self, size: int) -> bytes:
        self.taken.append(super().take(size))
        return self.taken[-1]


class Keys:
    """The commands on the keys, as `soundmark keys` gives them."""

    def __init__(self, database_url: Secret) -> None:
        self.clock = FakeClock()
        self.entropy = SeenEntropy()
        self.ctx = make_context(
            jobs_settings(database_url),
            application_name="tests-keys",
            pool_size=4,
            clock=self.clock,
            entropy=self.entropy,
        )
        self.db, self.sealer = self.ctx.db, self.ctx.sealer

    async def ensure(self) -> None:
        await service.ensure_active(self.ctx)

    async def stage(self) -> str:
        return (await service.stage(self.ctx)).key_id

    async def activate(self, key_id: str) -> None:
        await service.activate(self.ctx, key_id)

    async def retire(self, key_id: str) -> None:
        await service.retire(self.ctx, key_id)

    async def rotate(self) -> str:
        """Put a new key in place and return its id."""
        staged = await self.stage()
        await self.activate(staged)
        return staged

    async def by_status(self, status: str) -> str:
        """Return the one key of this status."""
        (found,) = [record.key_id for record in await service.list_keys(self.ctx) if record.status == status]
        return found

    async def statuses(self) -> list[str]:
        return [record.status for record in await service.list_keys(self.ctx)]

    async def make_one_of_each(self) -> None:
        """Make one key in every state."""
        await self.ensure()
        first = await self.by_status("active")
        await self.rotate()
        self.clock.advance(minutes=6)
        await self.retire(first)
        await self.rotate()
        await self.stage()
        assert sorted(await self.statuses()) == ["active", "next", "retired", "retiring"]


@pytest.fixture
async def keys(spare_database_url: Secret) -> AsyncIterator[Keys]:
    """The signing keys of a Core, step by step."""
    keys = Keys(spare_database_url)
    await keys.db.open()
    yield keys
    await keys.ctx.cells.aclose()
    await keys.db.close()


@pytest.fixture
def rival(spare_database_url: Secret) -> Rival:
    """A second connection, which alters rows and holds locks."""
    return Rival(spare_database_url)


@pytest.fixture
def live_keyrings(monkeypatch: pytest.MonkeyPatch) -> list[LiveKeyring]:
    """The keyrings of the apps that the test starts, in that order; each refreshes only when the test says so."""
    made: list[LiveKeyring] = []

    class RememberedKeyring(LiveKeyring):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr("soundmark.core.wiring.LiveKeyring", RememberedKeyring)
    monkeypatch.setattr("soundmark.core.live.keyring.REFRESH_S", 3600)
    return made


async def read_published_keys(api: Api) -> dict[str, str]:
    """Return the status of each published key."""
    return {key["kid"]: key["status"] for key in (await api.get("/v1/keys")).json["keys"]}


async def read_signer(api: Api, token: str) -> str:
    """Return the id of the key that signed the answer, which must verify with the published keys."""
    answer = await api.resolve(token)
    assert answer.status == 200, answer.body
    keys = read_key_set((await api.get("/v1/keys")).body)
    return verify_answer(answer.body, token, keys, api.clock.now()).key_id
