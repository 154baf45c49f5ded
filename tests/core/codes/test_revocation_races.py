"""After a withdrawal was answered, nothing that begins succeeds: under load, on two processes."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.identity.oidc_issuer import CLIENT_ID
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

ACTORS = 8  # On each of the two processes.
AFTER = 5  # Each of them begins this many more acts after the answer.
Act = Callable[[], Awaitable[Answer]]


@dataclass
class Storm:
    """Actors who act again and again, and the outcomes of their acts that began before and after a moment."""

    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    is_over: bool = False
    is_raging: asyncio.Event = field(default_factory=asyncio.Event)

    async def rage(self, *acts: Act, until: Awaitable[Answer]) -> Answer:
        """Let everybody act while `until` runs and a few times afterwards; return its result."""
        actors = [asyncio.create_task(self._act(act)) for act in acts for _ in range(ACTORS)]
        try:
            await self.is_raging.wait()
            answer = await until
            self.is_over = True
            await asyncio.gather(*actors)
        finally:
            for actor in actors:
                actor.cancel()
        return answer

    async def _act(self, act: Act) -> None:
        left = AFTER
        while left:
            is_after = self.is_over
            status = (await act()).status
            (self.after if is_after else self.before).append(status)
            left -= is_after
            if len(self.before) >= 2 * ACTORS:
                self.is_raging.set()


@pytest.fixture
async def elsewhere(
    people: People, database_url: Secret, clock: FakeClock, audio_url: str, measuring_url: str
) -> AsyncIterator[People]:
    """The same people at another process on the same database."""
    urls = {"audio_url": audio_url, "audience_url": measuring_url}
    settings = core_settings(database_url, **urls, oidc_issuer=people.issuer.url, oidc_client_id=CLIENT_ID)
    async with running_core(settings, clock) as api:
        yield People(api.other(token=None), people.issuer)


def at(tenant: Tenant, api: Api) -> Tenant:
    """Return the tenant as the same caller sees it at another process."""
    return Tenant(api, tenant.organization_id, tenant.project_id)


async def test_no_act_begun_after_a_demotion_succeeds(people: People, elsewhere: People, rival: Rival) -> None:
    owner = await people.tenant_of("olga")
    here = await people.member(owner, rival, "adam", "admin")
    there = at(here, elsewhere.person("adam"))
    numbers = itertools.count()
    storm = Storm()

    def making(tenant: Tenant) -> Act:
        body = {"organization_id": tenant.organization_id}
        return lambda: tenant.api.post("/v1/projects", json={**body, "name": f"Show {next(numbers)}"})

    demoted = await storm.rage(
        making(here),
        making(there),
        until=owner.api.put("/v1/members/adam", params=owner.query, json={"role": "member"}),
    )
    made = await rival.rows("SELECT count(*) FROM projects WHERE name LIKE 'Show %%'")

    assert demoted.status == 200
    assert set(storm.before) <= {201, 403}
    assert storm.before.count(201) >= ACTORS
    assert storm.after == [403] * (2 * ACTORS * AFTER)
    assert made == [(storm.before.count(201),)], "who is refused leaves nothing"


@pytest.mark.parametrize("change", ["revoke", "secret"])
async def test_no_request_begun_after_a_keys_end_is_accepted(
    people: People, elsewhere: People, rival: Rival, change: str
) -> None:
    owner = await people.tenant_of("olga")
    key = await owner.make_key()
    here = owner.with_key(key)
    there = at(owner, elsewhere.api).with_key(key)
    storm = Storm()

    def reading(tenant: Tenant) -> Act:
        return lambda: tenant.api.get("/v1/codes", params=tenant.query)

    def issuing(tenant: Tenant) -> Act:
        return lambda: tenant.api.post("/v1/codes", json=tenant.code_body())

    await owner.make_quota(rival, 100_000)
    ended = await storm.rage(
        reading(here),
        issuing(there),
        until=owner.api.post(f"/v1/api-keys/{key['id']}/{change}", params=owner.query),
    )
    issued = await rival.rows("SELECT count(*) FROM codes")

    assert ended.status == 200
    assert set(storm.before) <= {200, 201, 401}
    assert storm.after == [401] * (2 * ACTORS * AFTER)
    assert issued == [(storm.before.count(201),)]
