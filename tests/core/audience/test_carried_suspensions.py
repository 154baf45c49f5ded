"""A running worker carries a suspension and its end to Audience, which refuses and takes events sent to it directly."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, replace

import httpx2
import pytest
from support.audience.event_delivery import make_event, sign_body
from support.database.rival import Rival
from support.processes.faulty_proxy import FaultyProxy
from support.processes.killable import JOBS, Killable, until_alone
from support.tenancy.suspension import restore, suspend
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.platform.organizations import jobs
from soundmark.core.features.platform.organizations.service import CARRY

# A test starts up to two workers, and waits for the pause between their tries.
pytestmark = pytest.mark.timeout(300)

CARRYING = JOBS.format(CARRY)
TAKEN, REFUSED = (200, "duplicate"), (403, "organization_suspended")
WITHIN_S = 60  # Contract, point B35.


@dataclass(frozen=True)
class Publisher:
    """A publisher that sends the same event to Audience again and again, with its integration's secret."""

    tenant: Tenant
    url: str
    body: bytes
    secret: str

    async def send(self) -> tuple[int, str]:
        """Return the status, and what became of the event or the problem's code."""
        headers = {"Content-Type": "application/json", "X-Svc-Signature": sign_body(self.body, self.secret)}
        async with httpx2.AsyncClient(base_url=self.url) as client:
            answer = await client.post("/v1/events", content=self.body, headers=headers)
        document = answer.json()
        return answer.status_code, document.get("code") or document["status"]

    async def until(self, outcome: tuple[int, str]) -> None:
        """Wait until an event has this outcome, for a minute at most. No other outcome is allowed but the opposite."""
        async with asyncio.timeout(WITHIN_S):
            while (seen := await self.send()) != outcome:
                assert {seen, outcome} == {TAKEN, REFUSED}
                await asyncio.sleep(0.2)

    async def change(self, name: str) -> tuple[int, str]:
        """Suspend or restore the organisation; return the outcome that events have once Audience knows."""
        act = suspend if name == "suspend" else restore
        assert (await act(self.tenant.api, self.tenant.organization_id)).status == 200
        return REFUSED if name == "suspend" else TAKEN


@pytest.fixture
async def publisher(tenant: Tenant, measuring_url: str) -> Publisher:
    """A publisher whose event was recorded."""
    integration = await tenant.make_integration()
    code = await tenant.make_code(audience={"enabled": True, "integration_id": integration["id"]})
    body = json.dumps(await make_event(tenant, code)).encode()
    made = Publisher(tenant, measuring_url, body, integration["hmac_secret"])
    assert await made.send() == (201, "recorded")
    return made


async def test_audience_refuses_within_a_minute_and_takes_again_within_a_minute(
    publisher: Publisher, killable: Killable, rival: Rival
) -> None:
    async with killable.worker():
        await rival.until_found("SELECT FROM procrastinate_workers")
        for change in ("suspend", "restore"):
            await publisher.until(await publisher.change(change))


@pytest.mark.parametrize("change", ["suspend", "restore"])
async def test_a_change_while_audience_is_down_arrives_once_it_is_back(
    publisher: Publisher, killable: Killable, work: Context, rival: Rival, change: str
) -> None:
    """However long it was away: a try that fails is followed by another one half a minute later at most.

    Nobody listens at first, then an answer is lost.
    """
    if change == "restore":
        await publisher.change("suspend")
        await jobs.carry_suspension(work, organization_id=publisher.tenant.organization_id)
    before = await publisher.send()
    expected = await publisher.change(change)
    await rival.run("UPDATE procrastinate_jobs SET attempts = 50")
    async with replace(killable, audience_url="http://127.0.0.1:9").worker():
        await rival.until_found(f"{CARRYING} AND attempts > 50 AND status = 'todo'")
    soon = "SELECT scheduled_at < now() + interval '30 s' FROM procrastinate_jobs WHERE task_name = %s"
    assert await rival.rows(soon, CARRY) == [(True,)]
    assert await publisher.send() == before
    with FaultyProxy(publisher.url, "answer lost", where="/suspensions") as proxy:
        async with replace(killable, audience_url=proxy.url).worker():
            await rival.run("UPDATE procrastinate_jobs SET scheduled_at = now(), attempts = 0 WHERE status = 'todo'")
            await publisher.until(expected)
            await rival.until_rows(CARRYING, ("succeeded",))
        assert [passed.path.startswith("/v1/suspensions/") for passed in proxy.passed].count(True) == 2


async def test_a_change_that_audience_answered_too_slowly_undoes_no_later_one(
    publisher: Publisher, killable: Killable, rival: Rival, measuring: Rival
) -> None:
    """The worker gives up the suspension, and Audience applies it together with the restoration, in any order."""
    with FaultyProxy(publisher.url) as proxy:
        async with replace(killable, audience_url=proxy.url).worker(private_timeout_s="1"):
            with proxy.holding():
                await publisher.change("suspend")
                await rival.until_found(f"{CARRYING} AND attempts > 0 AND status = 'todo'")
                await publisher.change("restore")
                await rival.until_found(f"{CARRYING} AND status = 'doing'")
            await rival.until_rows(CARRYING, ("succeeded",))
            await measuring.until_rows("SELECT is_suspended, revision FROM suspensions", (False, 2))
        assert await publisher.send() == TAKEN


@dataclass(frozen=True)
class Phase:
    """Where a worker is killed: it waits for `lock` in Core's database, or in Audience's."""

    lock: str
    is_in_audience: bool = False


PHASES = {
    "before it has read the state": Phase("LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE"),
    "before audience has stored it": Phase("LOCK TABLE suspensions IN EXCLUSIVE MODE", is_in_audience=True),
}


@pytest.mark.parametrize("change", ["suspend", "restore"])
@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)
async def test_the_change_of_a_worker_that_is_killed_is_carried_by_the_next(
    publisher: Publisher,
    killable: Killable,
    work: Context,
    rival: Rival,
    measuring: Rival,
    change: str,
    phase: Phase,
) -> None:
    if change == "restore":
        await publisher.change("suspend")
        await jobs.carry_suspension(work, organization_id=publisher.tenant.organization_id)
    expected = await publisher.change(change)
    holder = measuring if phase.is_in_audience else rival
    async with holder.holding(phase.lock), killable.worker() as worker:
        await rival.until_rows(CARRYING, ("doing",))
        await holder.until_someone_waits()
        worker.kill()
    await until_alone(rival)
    assert await rival.rows(CARRYING) == [("doing",)]
    await killable.finish_job(rival, CARRY)
    assert await publisher.send() == expected


async def test_a_worker_that_is_killed_after_audience_has_stored_it(
    publisher: Publisher, killable: Killable, rival: Rival, measuring: Rival
) -> None:
    """The server executes a statement whose sender died, so the job may have ended all the same."""
    expected = await publisher.change("suspend")
    async with contextlib.AsyncExitStack() as dying, measuring.holding("LOCK TABLE suspensions IN EXCLUSIVE MODE"):
        worker = await dying.enter_async_context(killable.worker())
        await measuring.until_someone_waits()
        await dying.enter_async_context(worker.dying_while(rival, "SELECT FROM procrastinate_jobs FOR UPDATE"))
    await publisher.until(expected)
    if await rival.rows(CARRYING) == [("doing",)]:
        await killable.finish_job(rival, CARRY)
    assert await rival.rows(CARRYING) == [("succeeded",)]
    assert await publisher.send() == expected
    assert await measuring.rows("SELECT is_suspended, revision FROM suspensions") == [(True, 1)]
