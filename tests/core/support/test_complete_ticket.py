"""The job that brings a ticket to the desk if its request could not, and processes that die on the way."""

import datetime as dt
import json

import pytest
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.outside.desk import TICKETS, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.killable import Killable
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import TRIED_FOR
from soundmark.core.features.support.tickets.jobs import bring_to_desk
from soundmark.kit.postgres.job_queue import Later


async def cut_short(tenant: Tenant, desk: RunningSandbox, kind: str = "down") -> str:
    """Open a ticket at a desk in trouble; return its id."""
    await desk.misbehave("desk", kind, operation="create_conversation")
    failed = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert failed.status == 503
    (listed,) = (await tenant.api.get(TICKETS, params=tenant.query)).json["data"]
    ticket_id: str = listed["id"]
    return ticket_id


async def run(work: Context, tenant: Tenant, ticket_id: str) -> dt.datetime | None:
    """Run the job once; return when it wants to run again."""
    try:
        await bring_to_desk(work, organization_id=tenant.organization_id, ticket_id=ticket_id)
    except Later as later:
        return later.at
    return None


async def count_conversations(desk: RunningSandbox) -> int:
    return len((await desk.look("desk"))["conversations"])


async def is_sealed(rival: Rival) -> bool:
    ((is_sealed,),) = await rival.rows("SELECT sealed_message IS NOT NULL FROM tickets")
    return bool(is_sealed)


async def test_every_ticket_has_a_job(tenant: Tenant, desk: RunningSandbox, rival: Rival) -> None:
    opened = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert opened.status == 201
    assert await desk.look("desk") != {"conversations": []}
    statement = "SELECT args ->> 'ticket_id' FROM procrastinate_jobs WHERE task_name = 'complete_ticket'"
    assert await rival.rows(statement) == [(opened.json["id"],)]


@pytest.mark.parametrize("kind", ["down", "lost_answer"])
async def test_after_a_minute_it_completes_what_was_cut_short(
    *, tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, work: Context, kind: str
) -> None:
    clock.freeze()
    ticket_id = await cut_short(tenant, desk, kind)
    assert await run(work, tenant, ticket_id) == clock.now() + dt.timedelta(minutes=1)
    assert await is_sealed(rival)
    clock.advance(minutes=1)
    assert await run(work, tenant, ticket_id) is None
    assert await count_conversations(desk) == 1
    assert not await is_sealed(rival)
    assert await run(work, tenant, ticket_id) is None
    assert await count_conversations(desk) == 1


async def test_it_tries_for_three_days_with_longer_pauses(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, work: Context
) -> None:
    began = clock.freeze()
    ticket_id = await cut_short(tenant, desk)
    await desk.misbehave("desk", "server_error", times=0)
    runs: list[dt.timedelta] = []
    with capture_logs() as logs:
        while (again_at := await run(work, tenant, ticket_id)) is not None:
            clock.advance(seconds=(again_at - clock.now()).total_seconds())
            runs.append(again_at - began)
    minutes = [each.total_seconds() / 60 for each in runs]
    assert minutes[:8] == [1, 2, 4, 8, 16, 32, 64, 124]
    assert TRIED_FOR - dt.timedelta(hours=1) < runs[-1] <= TRIED_FOR
    assert [line["ticket_id"] for line in logs if line["event"] == "ticket_given_up"] == [ticket_id]
    assert "quiet" not in json.dumps(logs, default=str)
    # The person who asks again still gets it to the desk.
    await desk.control("/switches/reset")
    clock.advance(minutes=1)
    assert await is_sealed(rival)
    assert (await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())).status == 200
    assert await count_conversations(desk) == 1


async def test_a_ticket_of_a_deleted_organisation_is_left_alone(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, work: Context
) -> None:
    ticket_id = await cut_short(tenant, desk)
    await rival.run("DELETE FROM tickets")
    clock.advance(minutes=1)
    assert await run(work, tenant, ticket_id) is None
    assert await count_conversations(desk) == 0


async def test_a_completed_ticket_is_announced_as_active(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, work: Context
) -> None:
    """It was seen as pending."""
    ticket_id = await cut_short(tenant, desk)
    await rival.run(
        "INSERT INTO webhook_endpoints (organization_id, id, url, description, enabled, sealed_secret, created_at)"
        " VALUES (%s, 'whe_1', 'https://example.org', '', true, '', now())",
        tenant.organization_id,
    )
    clock.advance(minutes=1)
    await run(work, tenant, ticket_id)
    rows = await rival.rows("SELECT type, actor_type, actor_id, data FROM webhook_acts")
    assert [(kind, actor_type, actor_id, json.loads(data)) for kind, actor_type, actor_id, data in rows] == [
        ("support.ticket_status_changed", "system", "soundmark", {"ticket_id": ticket_id, "status": "active"})
    ]


@pytest.mark.parametrize("phase", ["searching", "storing"])
async def test_a_core_that_is_killed_leaves_one_conversation(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, killable: Killable, phase: str
) -> None:
    """Between the phases: before the desk is asked, and after it has the ticket."""
    table = "platform_configuration" if phase == "searching" else "desk_conversations"
    async with killable.core() as core, core.dying_while(rival, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"):
        core.lose("POST", TICKETS, params=tenant.query, json=ticket_body())
    assert await count_conversations(desk) == (phase == "storing")
    assert await is_sealed(rival)
    repeated = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert repeated.status == 200
    assert await count_conversations(desk) == 1
    assert not await is_sealed(rival)
