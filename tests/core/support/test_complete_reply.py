"""The job that brings a reply to the desk if its request could not, and processes that die on the way."""

import datetime as dt
import json
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.outside.desk import TICKETS, reply_body, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.killable import Killable
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import TRIED_FOR
from soundmark.core.features.support.tickets.jobs import bring_reply_to_desk, bring_to_desk
from soundmark.kit.postgres.jobs import Later


@pytest.fixture
async def messages(tenant: Tenant, desk: RunningSandbox) -> str:
    """The path of the messages of a ticket, which the desk has."""
    opened = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert opened.status == 201
    assert await count_threads(desk) == 1
    return f"{TICKETS}/{opened.json['id']}/messages"


async def cut_short(tenant: Tenant, desk: RunningSandbox, rival: Rival, messages: str, kind: str = "down") -> str:
    """Reply at a desk in trouble; return the reply's id."""
    await desk.misbehave("desk", kind, operation="create_thread")
    assert (await tenant.api.post(messages, params=tenant.query, json=reply_body())).status == 503
    ((reply_id,),) = await rival.rows("SELECT id FROM ticket_replies")
    return str(reply_id)


async def run(work: Context, tenant: Tenant, reply_id: str) -> dt.datetime | None:
    """Run the job once; return when it wants to run again."""
    try:
        await bring_reply_to_desk(work, organization_id=tenant.organization_id, reply_id=reply_id)
    except Later as later:
        return later.at
    return None


async def count_threads(desk: RunningSandbox) -> int:
    conversations: list[dict[str, Any]] = (await desk.look("desk"))["conversations"]
    return sum(each["threadsCount"] for each in conversations)


async def is_sealed(rival: Rival) -> bool:
    ((is_sealed,),) = await rival.rows("SELECT sealed_message IS NOT NULL FROM ticket_replies")
    return bool(is_sealed)


async def test_every_reply_has_a_job(tenant: Tenant, rival: Rival, messages: str) -> None:
    assert (await tenant.api.post(messages, params=tenant.query, json=reply_body())).status == 201
    statement = "SELECT args ->> 'reply_id' FROM procrastinate_jobs WHERE task_name = 'complete_reply'"
    assert await rival.rows(statement) == await rival.rows("SELECT id FROM ticket_replies")


@pytest.mark.parametrize("kind", ["down", "lost_answer"])
async def test_after_a_minute_it_completes_what_was_cut_short(
    *, tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, work: Context, messages: str, kind: str
) -> None:
    clock.freeze()
    reply_id = await cut_short(tenant, desk, rival, messages, kind)
    assert await run(work, tenant, reply_id) == clock.now() + dt.timedelta(minutes=1)
    assert await is_sealed(rival)
    clock.advance(minutes=1)
    for _ in range(2):
        assert await run(work, tenant, reply_id) is None
        assert await count_threads(desk) == 2
        assert not await is_sealed(rival)


async def test_it_tries_for_three_days_with_longer_pauses(
    *, tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, work: Context, messages: str
) -> None:
    began = clock.freeze()
    reply_id = await cut_short(tenant, desk, rival, messages)
    await desk.misbehave("desk", "server_error", times=0)
    runs: list[dt.timedelta] = []
    with capture_logs() as logs:
        while (again_at := await run(work, tenant, reply_id)) is not None:
            clock.advance(seconds=(again_at - clock.now()).total_seconds())
            runs.append(again_at - began)
    minutes = [each.total_seconds() / 60 for each in runs]
    assert minutes[:8] == [1, 2, 4, 8, 16, 32, 64, 124]
    assert TRIED_FOR - dt.timedelta(hours=1) < runs[-1] <= TRIED_FOR
    assert [line["reply_id"] for line in logs if line["event"] == "reply_given_up"] == [reply_id]
    assert "quiet" not in json.dumps(logs, default=str)
    # The person who sends it again still gets it to the desk.
    await desk.control("/switches/reset")
    clock.advance(minutes=1)
    assert (await tenant.api.post(messages, params=tenant.query, json=reply_body())).status == 200
    assert await count_threads(desk) == 2


async def test_it_waits_for_the_ticket(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, work: Context
) -> None:
    await desk.misbehave("desk", "down", operation="create_conversation")
    assert (await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())).status == 503
    ((ticket_id,),) = await rival.rows("SELECT id FROM tickets")
    path = f"{TICKETS}/{ticket_id}/messages"
    assert (await tenant.api.post(path, params=tenant.query, json=reply_body())).status == 503
    ((reply_id,),) = await rival.rows("SELECT id FROM ticket_replies")
    clock.advance(minutes=1)
    assert await run(work, tenant, reply_id) is not None
    await bring_to_desk(work, organization_id=tenant.organization_id, ticket_id=ticket_id)
    assert await run(work, tenant, reply_id) is None
    newest, oldest = (await desk.look("desk"))["conversations"][0]["_embedded"]["threads"]
    assert (newest["body"].split("<")[0], oldest["body"].split("<")[0]) == ("It is on.", "It is quiet.")


async def test_a_reply_of_a_deleted_organisation_is_left_alone(
    *, tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, work: Context, messages: str
) -> None:
    reply_id = await cut_short(tenant, desk, rival, messages)
    await rival.run("DELETE FROM tickets")
    assert await rival.rows("SELECT 1 FROM ticket_replies") == []
    clock.advance(minutes=1)
    assert await run(work, tenant, reply_id) is None
    assert await count_threads(desk) == 1


async def test_a_core_that_is_killed_before_it_asks_the_desk_leaves_the_reply_waiting(
    *, tenant: Tenant, desk: RunningSandbox, rival: Rival, killable: Killable, messages: str
) -> None:
    lock = "LOCK TABLE platform_configuration IN ACCESS EXCLUSIVE MODE"
    async with killable.core() as core, core.dying_while(rival, lock):
        core.lose("POST", messages, params=tenant.query, json=reply_body())
    await complete_what_was_killed(tenant, desk, rival, messages, thread_count=1)


async def test_a_core_that_is_killed_after_the_post_leaves_one_thread(
    *, tenant: Tenant, desk: RunningSandbox, rival: Rival, killable: Killable, messages: str
) -> None:
    async with killable.core() as core:
        await desk.hold("desk", "create_thread")
        core.lose("POST", messages, params=tenant.query, json=reply_body())
        await desk.until_held("desk")
        async with core.dying_while(rival, "LOCK TABLE ticket_replies IN ACCESS EXCLUSIVE MODE"):
            await desk.release("desk")
    await complete_what_was_killed(tenant, desk, rival, messages, thread_count=2)


async def complete_what_was_killed(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, messages: str, *, thread_count: int
) -> None:
    """Repeat the request whose process died, after which the desk had so many threads."""
    assert await count_threads(desk) == thread_count
    assert await is_sealed(rival)
    repeated = await tenant.api.post(messages, params=tenant.query, json=reply_body())
    assert (repeated.status, len(repeated.json["messages"])) == (200, 2)
    assert await count_threads(desk) == 2
    assert not await is_sealed(rival)
