"""Intents that a crash left `requested` get their outcome, by asking Audience what it did."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from support.audience.faults import KINDS, failing_audience
from support.database.rival import Rival
from support.outside.misbehaving_server import answer, misbehaving_server
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.audit import AuditIntent, FinalOutcome, IntentAction
from soundmark.core.features.audience.integrations import jobs
from soundmark.core.store.tenancy import audit
from soundmark.kit.crypto.secret import Secret

REVOCATION = "audience.integration_revocation"


async def make_intent(tenant: Tenant, rival: Rival, identity: str = "aud_" + "A" * 22, **facts: Any) -> AuditIntent:
    """Write an entry that was requested just now."""
    now = tenant.api.clock.now()
    await tenant.give_cell(rival)
    intent = AuditIntent(tenant.organization_id, identity, tenant.project_id, facts.get("action", REVOCATION), now)
    await rival.run(
        "INSERT INTO audit_entries VALUES (%s, %s, %s, %s, 'user', 'operator', 'requested', '{}', %s, NULL)",
        intent.organization_id,
        intent.id,
        intent.project_id,
        intent.action,
        now,
    )
    return intent


async def make_operation(measuring: Rival, tenant: Tenant, identity: str) -> None:
    """Record that Audience carried out the operation."""
    integration = await tenant.make_integration()
    await measuring.run("UPDATE operations SET id = %s WHERE answer LIKE %s", identity, "%" + integration["id"] + "%")


async def outcome_of(rival: Rival, identity: str) -> str:
    ((outcome,),) = await rival.rows("SELECT outcome FROM audit_entries WHERE id = %s", identity)
    return str(outcome)


async def test_an_intent_that_audience_carried_out_is_completed(
    tenant: Tenant, rival: Rival, measuring: Rival, work: Context
) -> None:
    intent = await make_intent(tenant, rival)
    await make_operation(measuring, tenant, intent.id)
    tenant.api.clock.advance(seconds=61)
    assert await jobs.settle_intents(work) == 1
    assert await outcome_of(rival, intent.id) == "completed"
    assert await jobs.settle_intents(work) == 0


async def test_an_intent_that_may_be_under_way_is_left_alone(
    tenant: Tenant, rival: Rival, measuring: Rival, work: Context
) -> None:
    """For a minute its caller may settle it; for five minutes Audience may still carry it out unnoticed."""
    now = tenant.api.clock.freeze()
    intent = await make_intent(tenant, rival)
    for seconds in (0, 60, 240):
        tenant.api.clock.frozen_at = now + timedelta(seconds=seconds)
        assert await jobs.settle_intents(work) == 0
        assert await outcome_of(rival, intent.id) == "requested"
    tenant.api.clock.frozen_at = now + timedelta(minutes=5)
    assert await jobs.settle_intents(work) == 1
    assert await outcome_of(rival, intent.id) == "failed"
    # The outcome stays, whatever Audience answers later.
    await make_operation(measuring, tenant, intent.id)
    assert await jobs.settle_intents(work) == 0
    assert await outcome_of(rival, intent.id) == "failed"


async def test_many_intents_of_all_tenants_are_settled_at_once(tenant: Tenant, rival: Rival, work: Context) -> None:
    other = await make_tenant(tenant.api)
    for number in range(205):
        await make_intent(tenant if number % 2 else other, rival, f"aud_{number:022d}")
    tenant.api.clock.advance(minutes=6)
    assert await jobs.settle_intents(work) == 205
    assert await rival.rows("SELECT FROM audit_entries WHERE outcome = 'requested'") == []
    sealed = "SELECT count(*) FROM audit_entries WHERE action = %s AND finalised_at IS NOT NULL AND outcome = 'failed'"
    assert await rival.rows(sealed, REVOCATION) == [(205,)]


@pytest.mark.parametrize("fault", KINDS)
async def test_while_audience_fails_nothing_is_settled(
    tenant: Tenant, rival: Rival, database_url: Secret, clock: FakeClock, fault: str
) -> None:
    """Nor is anything taken for failed: a malformed answer says nothing about the operation."""
    intent = await make_intent(tenant, rival)
    clock.advance(hours=1)
    async with (
        failing_audience(fault) as url,
        make_worker(database_url, clock, AUDIENCE_URL=url, PRIVATE_TIMEOUT_S="1") as ctx,
    ):
        assert await jobs.settle_intents(ctx) == 0
    assert await outcome_of(rival, intent.id) == "requested"


async def test_an_intent_that_audience_fails_on_does_not_delay_the_others(
    tenant: Tenant, rival: Rival, measuring: Rival, work: Context
) -> None:
    """Three in a row are no longer an accident."""
    names = [f"aud_{number:022}" for number in range(8)]
    for name in names:
        await make_intent(tenant, rival, name)
        await make_operation(measuring, tenant, name)
    broken = {names[0], names[2], names[3], names[5], names[6], names[7]}
    await measuring.run("UPDATE operations SET answer = 'no JSON' WHERE id = ANY(%s)", list(broken))
    tenant.api.clock.advance(minutes=2)
    assert await jobs.settle_intents(work) == 2
    outcomes = [await outcome_of(rival, name) for name in names]
    assert outcomes == ["requested" if name in broken else "completed" for name in names]


async def test_an_answer_about_another_operation_settles_nothing(
    tenant: Tenant, rival: Rival, database_url: Secret, clock: FakeClock
) -> None:
    intent = await make_intent(tenant, rival)
    clock.advance(hours=1)
    async with (
        misbehaving_server(answer(json.dumps({"id": "aud_other"}).encode())) as server,
        make_worker(database_url, clock, AUDIENCE_URL=server.url) as ctx,
    ):
        assert await jobs.settle_intents(ctx) == 0
    assert await outcome_of(rival, intent.id) == "requested"


@pytest.mark.parametrize(
    "changes",
    [
        {"action": "audience.integration_provisioning"},
        {"project_id": None},
        {"project_id": "prj_" + "A" * 22},
        {"id": "aud_" + "B" * 22},
        {"organization_id": "another"},
    ],
    ids=str,
)
async def test_only_the_exact_entry_is_finalised(
    tenant: Tenant, rival: Rival, work: Context, changes: dict[str, Any]
) -> None:
    """API v1, "Lifecycle audit intents"."""
    other = await make_tenant(tenant.api)
    intent = await make_intent(tenant, rival)
    facts = {name: getattr(intent, name) for name in AuditIntent.__dataclass_fields__} | changes
    if facts["organization_id"] == "another":
        facts["organization_id"] = other.organization_id
    async with work.db.transaction(tenant=facts["organization_id"]) as tx:
        assert not await audit.update_outcome(tx, AuditIntent(**facts), outcome="completed", now=work.clock.now())
    assert await outcome_of(rival, intent.id) == "requested"


@pytest.mark.parametrize("first", ["completed", "failed"])
async def test_of_two_outcomes_the_first_stays(
    tenant: Tenant, rival: Rival, work: Context, first: FinalOutcome
) -> None:
    """The caller and the job at the same time: a final entry is never rewritten, and is sealed once."""
    intent = await make_intent(tenant, rival)
    second: FinalOutcome = "failed" if first == "completed" else "completed"

    async def finalise(outcome: FinalOutcome) -> bool:
        async with work.db.transaction(tenant=intent.organization_id) as tx:
            return await audit.update_outcome(tx, intent, outcome=outcome, now=work.clock.now())

    statement = "UPDATE audit_entries SET outcome = %s, finalised_at = now() WHERE id = %s"
    async with rival.committing(statement, first, intent.id):
        waiting = await rival.while_waiting(finalise(second))
    assert await waiting is False
    assert await outcome_of(rival, intent.id) == first
    assert not await rival.rows("SELECT FROM audit_unsealed WHERE stage = 'final' AND entry_id = %s", intent.id)


async def test_two_workers_settle_each_once(tenant: Tenant, rival: Rival, work: Context) -> None:
    for number in range(20):
        await make_intent(tenant, rival, f"aud_{number:022d}")
    tenant.api.clock.advance(minutes=6)
    assert sum(await asyncio.gather(jobs.settle_intents(work), jobs.settle_intents(work))) == 20


async def test_a_worker_that_dies_leaves_the_rest_to_the_next(tenant: Tenant, rival: Rival, work: Context) -> None:
    intent = await make_intent(tenant, rival)
    tenant.api.clock.advance(minutes=6)
    async with rival.holding("SELECT FROM audit_entries WHERE id = %s FOR UPDATE", intent.id):
        settling = await rival.while_waiting(jobs.settle_intents(work))
        await rival.kill_waiting_sessions()
        with pytest.raises(Exception, match="database"):
            await settling
    assert await outcome_of(rival, intent.id) == "requested"
    assert await jobs.settle_intents(work) == 1


@pytest.mark.parametrize("action", ["audience.integration_provisioning", "audience.integration_core_key_update"])
async def test_an_integration_missed_by_a_rotation_gets_the_key_again(
    tenant: Tenant, rival: Rival, measuring: Rival, work: Context, action: IntentAction
) -> None:
    """The process that gave it a key died before checking whether a rotation had missed it."""
    await rival.run("UPDATE signing_keys SET pushed_at = now()")
    intent = await make_intent(tenant, rival, action=action)
    await make_operation(measuring, tenant, intent.id)
    tenant.api.clock.advance(seconds=61)
    await jobs.settle_intents(work)
    assert await rival.rows("SELECT pushed_at FROM signing_keys WHERE status = 'active'") == [(None,)]
