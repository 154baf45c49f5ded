"""The life of a signing key: made once, published before it signs, replaced and retired by the rules."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg.errors import UniqueViolation
from soundmark_sdk import read_key_set, verify_answer
from support.core_client import Api
from support.core_settings import core_settings, jobs_settings
from support.fake_clock import FakeClock
from support.rival import Rival
from support.running_apps import running_core
from support.tenant import make_tenant

from soundmark.core.features.codes.signing_keys import service
from soundmark.core.features.codes.signing_keys.service import KeyRefused
from soundmark.core.live.keyring import LiveKeyring
from soundmark.core.wiring import make_context
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SEED_BYTES, SigningKey, verifies
from soundmark.kit.startup import CannotStart
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

OTHER_MASTER_KEY = "A" * 43
_WRITTEN = "LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE"


class SeenEntropy(SystemEntropy):
    """Real randomness, of which the test knows what was taken."""

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
        """The id of the key that signs from now on."""
        staged = await self.stage()
        await self.activate(staged)
        return staged

    async def by_status(self, status: str) -> str:
        """The one key of this status."""
        (found,) = [record.key_id for record in await service.list_keys(self.ctx) if record.status == status]
        return found

    async def statuses(self) -> list[str]:
        return [record.status for record in await service.list_keys(self.ctx)]

    async def make_one_of_each(self) -> None:
        """One key in every state."""
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
    keys = Keys(spare_database_url)
    await keys.db.open()
    yield keys
    await keys.ctx.audience.aclose()
    await keys.db.close()


@pytest.fixture
def rival(spare_database_url: Secret) -> Rival:
    return Rival(spare_database_url)


@pytest.fixture
def custodies(monkeypatch: pytest.MonkeyPatch) -> list[LiveKeyring]:
    """Those of the apps that the test starts, in that order; each looks for new keys when the test says so."""
    made: list[LiveKeyring] = []

    class Known(LiveKeyring):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr("soundmark.core.wiring.LiveKeyring", Known)
    monkeypatch.setattr("soundmark.core.live.keyring.REFRESH_S", 3600)
    return made


@contextlib.asynccontextmanager
async def two_cores(url: Secret) -> AsyncIterator[tuple[Api, Api]]:
    settings = core_settings(url)
    async with running_core(settings) as one, running_core(settings) as other:
        yield one, other


async def published(api: Api) -> dict[str, str]:
    """The status of each published key."""
    return {key["kid"]: key["status"] for key in (await api.get("/v1/keys")).json["keys"]}


async def signer(api: Api, token: str) -> str:
    """Who signed the answer, which verifies with the keys that are published now."""
    answer = await api.resolve(token)
    assert answer.status == 200, answer.body
    keys = read_key_set((await api.get("/v1/keys")).body)
    return verify_answer(answer.body, token, keys, api.clock.now()).key_id


async def test_two_first_starts_at_once_make_one_key(spare_database_url: Secret, rival: Rival) -> None:
    """Both have found the table as it was before either made a key."""
    async with contextlib.AsyncExitStack() as running:
        async with rival.holding(_WRITTEN):
            starts = [
                asyncio.create_task(running.enter_async_context(running_core(core_settings(spare_database_url))))
                for _ in range(2)
            ]
            await rival.until_someone_waits(2)
        one, other = await asyncio.gather(*starts)
        keys = await published(one)
        assert (list(keys.values()), await published(other)) == (["active"], keys)


async def test_a_start_with_keys_makes_no_other(spare_database_url: Secret) -> None:
    seen = []
    for _ in range(2):
        async with running_core(core_settings(spare_database_url)) as api:
            seen.append(await published(api))
    assert (seen[0], list(seen[0].values())) == (seen[1], ["active"])


async def test_no_seed_is_stored_in_clear(keys: Keys, rival: Rival) -> None:
    await keys.ensure()
    await keys.rotate()
    seeds = [taken for taken in keys.entropy.taken if len(taken) == SEED_BYTES]
    records = await service.list_keys(keys.ctx)
    signers = [SigningKey.from_seed("", seed).public_key for seed in seeds]
    assert {record.public_key for record in records} <= set(signers)
    stored = str(await rival.rows("SELECT signing_keys::text, encode(sealed_seed, 'hex') FROM signing_keys"))
    for seed in seeds:
        assert seed.hex() not in stored
        assert base64.b64encode(seed).decode() not in stored


async def test_a_sealed_seed_opens_in_its_own_row_only(keys: Keys, rival: Rival) -> None:
    """Whoever can write the table cannot make one key sign under the name of another."""
    await keys.ensure()
    await keys.stage()
    await rival.run(
        "UPDATE signing_keys SET sealed_seed = (SELECT sealed_seed FROM signing_keys WHERE status = 'next')"
        " WHERE status = 'active'"
    )
    with pytest.raises(SealBroken):
        await keys.ensure()


async def test_under_another_master_key_core_does_not_start(spare_database_url: Secret, keys: Keys) -> None:
    await keys.ensure()
    before = await service.list_keys(keys.ctx)
    with pytest.raises(CannotStart, match=r": sealed under another master key$"):
        async with running_core(core_settings(spare_database_url, master_key=OTHER_MASTER_KEY)):
            pass
    assert await service.list_keys(keys.ctx) == before


async def test_what_is_published_is_a_jwk_set_of_all_keys_but_the_retired(
    spare_database_url: Secret, keys: Keys
) -> None:
    await keys.make_one_of_each()
    records = {record.key_id: record for record in await service.list_keys(keys.ctx)}
    async with running_core(core_settings(spare_database_url)) as api:
        answer = await api.other(token=None).get("/v1/keys")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.json == {
        "keys": [
            {
                "kty": "OKP",
                "crv": "Ed25519",
                "alg": "EdDSA",
                "use": "sig",
                "kid": record.key_id,
                "x": base64.urlsafe_b64encode(record.public_key).decode().rstrip("="),
                "status": record.status,
            }
            for record in records.values()
            if record.status != "retired"
        ]
    }
    assert len(answer.json["keys"]) == 3


async def test_the_history_is_a_jwk_set_of_every_key_that_ever_signed(spare_database_url: Secret, keys: Keys) -> None:
    """A retired key too, each with the time during which it signed; not the key that only waits to sign."""
    await keys.make_one_of_each()
    records = await service.list_keys(keys.ctx)
    async with running_core(core_settings(spare_database_url)) as api:
        answer = await api.other(token=None).get("/v1/keys/history")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.json == {
        "keys": [
            {
                "kty": "OKP",
                "crv": "Ed25519",
                "alg": "EdDSA",
                "use": "sig",
                "kid": record.key_id,
                "x": base64.urlsafe_b64encode(record.public_key).decode().rstrip("="),
                "status": record.status,
                "activated_at": format_timestamp(record.activated_at),
                "superseded_at": format_timestamp(record.superseded_at) if record.superseded_at else None,
            }
            for record in records
            if record.activated_at is not None
        ]
    }
    statuses = [(key["status"], key["superseded_at"] is None) for key in answer.json["keys"]]
    assert statuses == [("retired", False), ("retiring", False), ("active", True)]
    retired, retiring, active = answer.json["keys"]
    assert retired["superseded_at"] == retiring["activated_at"]
    assert retiring["superseded_at"] == active["activated_at"]


async def test_what_a_retired_key_signed_verifies_by_the_history(spare_database_url: Secret, keys: Keys) -> None:
    async with running_core(core_settings(spare_database_url), keys.clock) as api:
        tenant = await make_tenant(api)
        code = await tenant.make_code(lifetime_s=60)
        old = code["signed_code"]["key_id"]
        await keys.rotate()
        keys.clock.advance(minutes=6)
        await keys.retire(old)
        history = (await api.get("/v1/keys/history")).json["keys"]
    (key,) = [key for key in history if key["kid"] == old]
    signed_code = dict(code["signed_code"])
    signature = base64url.decode(signed_code.pop("signature"))
    assert key["status"] == "retired"
    assert verifies(base64url.decode(key["x"]), canonicalize(signed_code), signature)


async def test_a_key_that_core_did_not_make_is_not_in_the_history(
    spare_database_url: Secret, keys: Keys, rival: Rival
) -> None:
    """Otherwise whoever can write to the database could have an old Code of their own believed."""
    await keys.make_one_of_each()
    planted = SigningKey.from_seed("sig_planted", bytes(32))
    await rival.run(
        "INSERT INTO signing_keys (key_id, public_key, status, created_at, activated_at, superseded_at, retired_at)"
        " VALUES (%s, %s, 'retired', now(), now(), now(), now())",
        planted.key_id,
        planted.public_key,
    )
    async with running_core(core_settings(spare_database_url)) as api:
        history = (await api.get("/v1/keys/history")).json["keys"]
    assert planted.key_id not in {key["kid"] for key in history}
    assert len(history) == 3


async def test_a_key_is_published_by_every_process_before_any_signs_with_it(
    spare_database_url: Secret, keys: Keys
) -> None:
    """A receiver that does not know the signer asks whichever process it reaches, and must find it there."""
    async with two_cores(spare_database_url) as (one, other):
        code = await (await make_tenant(one)).make_code()
        old = await signer(one, code["broadcast_token"])
        staged = await keys.stage()
        for api in (one, other):
            assert await published(api) == {old: "active", staged: "next"}
            assert await signer(api, code["broadcast_token"]) == old
        await keys.activate(staged)
        for api in (one, other):
            assert await published(api) == {old: "retiring", staged: "active"}


async def test_every_process_signs_with_a_new_key_without_a_restart(
    spare_database_url: Secret, keys: Keys, custodies: list[LiveKeyring]
) -> None:
    """And what the old one signed goes on being resolved by both, and verifies."""
    async with two_cores(spare_database_url) as cores:
        tenants = [await make_tenant(api) for api in cores]
        before = [(await tenant.make_code())["broadcast_token"] for tenant in tenants]
        new = await keys.rotate()
        for api, live_keyring in zip(cores, custodies, strict=True):
            await live_keyring.refresh()
            # What was shared among the receivers of one token is a second old at most.
            api.clock.advance(seconds=1)
        after = [await tenant.make_code() for tenant in tenants]
        assert {code["signed_code"]["key_id"] for code in after} == {new}
        tokens = [*before, *(code["broadcast_token"] for code in after)]
        assert {await signer(api, token) for api in cores for token in tokens} == {new}


async def test_a_code_of_a_key_that_this_process_has_not_heard_of_is_resolved(
    spare_database_url: Secret, keys: Keys, custodies: list[LiveKeyring]
) -> None:
    """Issued by the other process a moment after the rotation."""
    async with two_cores(spare_database_url) as (one, other):
        tenant = await make_tenant(one)
        new = await keys.rotate()
        await custodies[0].refresh()
        code = await tenant.make_code()
        assert code["signed_code"]["key_id"] == new
        assert new not in custodies[1].keyring.keys
        assert await signer(other, code["broadcast_token"]) == new


ALLOWED = {("activate", "next"): "active", ("retire", "retiring"): "retired"}
UNCHANGED = {("activate", "active"), ("retire", "retired")}
STATES = ["next", "active", "retiring", "retired"]


@pytest.mark.parametrize("step", ["activate", "retire"])
@pytest.mark.parametrize("status", STATES)
async def test_a_step_is_taken_from_its_own_state_only(keys: Keys, step: str, status: str) -> None:
    await keys.make_one_of_each()
    keys.clock.advance(minutes=6)
    before = {record.key_id: record for record in await service.list_keys(keys.ctx)}
    key_id = await keys.by_status(status)
    take = getattr(keys, step)
    if (step, status) in ALLOWED:
        await take(key_id)
        after = {record.key_id: record for record in await service.list_keys(keys.ctx)}
        assert after[key_id].status == ALLOWED[step, status]
        assert [record.status for record in after.values()].count("active") == 1
    elif (step, status) in UNCHANGED:
        await take(key_id)
        assert {record.key_id: record for record in await service.list_keys(keys.ctx)} == before
    else:
        with pytest.raises(KeyRefused, match=f"{key_id} is {status}; only a"):
            await take(key_id)
        assert {record.key_id: record for record in await service.list_keys(keys.ctx)} == before


async def test_a_key_is_protected_for_six_minutes_after_it_was_replaced(keys: Keys) -> None:
    """The longest life of a proof, and a process that had not heard of the rotation."""
    keys.clock.freeze()
    await keys.ensure()
    old = await keys.by_status("active")
    await keys.rotate()
    keys.clock.advance(seconds=359)
    with pytest.raises(KeyRefused, match="signed proofs until a moment ago"):
        await keys.retire(old)
    keys.clock.advance(seconds=1)
    await keys.retire(old)
    assert await keys.by_status("retired") == old


async def test_a_key_is_protected_until_its_last_code_has_expired(spare_database_url: Secret, keys: Keys) -> None:
    """Revoked or not: a revoked Code is still read by its owner, who verifies it."""
    async with running_core(core_settings(spare_database_url), keys.clock) as api:
        keys.clock.freeze()
        tenant = await make_tenant(api)
        code = await tenant.make_code(lifetime_s=3600)
        old = code["signed_code"]["key_id"]
        await tenant.revoke(code["xr_id"])
        await keys.rotate()
        keys.clock.advance(seconds=3599)
        with pytest.raises(KeyRefused, match="signed Codes that have not expired"):
            await keys.retire(old)
        assert old in await published(api)
        keys.clock.advance(seconds=1)
        await keys.retire(old)
        assert old not in await published(api)
        # What it signed is history that still verifies.
        read = await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)
        assert (read.status, read.json["status"]) == (200, "revoked")


async def test_a_retired_key_has_no_secret_half(keys: Keys, rival: Rival) -> None:
    await keys.make_one_of_each()
    rows = await rival.rows("SELECT status FROM signing_keys WHERE sealed_seed IS NULL")
    assert rows == [("retired",)]


async def test_two_rotations_at_once_make_one_new_key(keys: Keys, rival: Rival) -> None:
    """Both take the key that is staged; the second finds it active, which is what it wanted."""
    await keys.ensure()
    async with rival.holding(_WRITTEN):
        rotations = [asyncio.create_task(keys.rotate()) for _ in range(2)]
        await rival.until_someone_waits(2)
    one, other = await asyncio.gather(*rotations, return_exceptions=True)
    assert one == other == await keys.by_status("active")
    assert sorted(await keys.statuses()) == ["active", "retiring"]


async def test_of_an_activation_and_a_retirement_at_once_each_judges_what_the_other_left(
    keys: Keys, rival: Rival
) -> None:
    await keys.ensure()
    old, staged = await keys.by_status("active"), await keys.stage()
    async with rival.holding(_WRITTEN):
        activation = await rival.while_waiting(keys.activate(staged))
        retirement = asyncio.create_task(keys.retire(old))
        await rival.until_someone_waits(2)
    await activation
    with pytest.raises(KeyRefused, match="signed proofs until a moment ago"):
        await retirement


async def test_the_database_itself_allows_one_active_key_only(keys: Keys, rival: Rival) -> None:
    await keys.ensure()
    await keys.stage()
    with pytest.raises(UniqueViolation):
        await rival.run("UPDATE signing_keys SET status = 'active'")
