"""`PUT /v1/billing/admin/audience-contracts/{organization_id}`: a contract for measuring, without a payment."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
import structlog
from support.billing.subscriptions import CONTRACT_PLAN, PLUS, STUDIO, Buyer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import make_tenant

from soundmark.core.features.audience.integrations.jobs import project_entitlement
from soundmark.kit.text.timestamps import format_timestamp


@pytest.fixture
def end(clock: FakeClock) -> str:
    """The end of a contract, thirty days ahead."""
    return format_timestamp(clock.freeze() + timedelta(days=30))


async def test_an_active_contract_entitles_to_measure(buyer: Buyer, end: str) -> None:
    answer = await buyer.put_contract("C-1", period_end=end)

    assert answer.status == 200
    assert answer.json == {
        "organization_id": buyer.organization_id,
        "plan_id": CONTRACT_PLAN,
        "contract_reference": "C-1",
        "status": "active",
        "period_end": end,
        "updated_at": format_timestamp(buyer.ctx.clock.now()),
    }
    assert await buyer.entitlement("contract") == (5000, buyer.ctx.clock.now() + timedelta(days=30), 1)
    assert (await buyer.tenant.make_integration(mode="contract", retention_days=730))["mode"] == "contract"


async def test_it_is_in_the_audit_log_as_the_platforms_and_in_the_process_log(buyer: Buyer, rival: Rival) -> None:
    with structlog.testing.capture_logs() as lines:
        await buyer.put_contract("C-1")
    ((first,),) = await rival.rows("SELECT id FROM subscriptions")
    await buyer.put_contract("C-2")

    (one, other) = await rival.audited("billing.audience_contract_changed")

    assert one == ("platform operator", None, {
        "subscription_id": first, "plan_id": CONTRACT_PLAN, "status": "active", "period_end": None,
        "replaced_id": None, "revision": 1,
    })  # fmt: skip
    assert (other[2]["replaced_id"], other[2]["revision"]) == (first, 1)
    (line,) = [line for line in lines if line["event"] == "audience_contract_changed"]
    assert (line["organization_id"], line["status"], line["subject_id"]) == (
        buyer.organization_id, "active", "operator",
    )  # fmt: skip


async def test_a_contract_without_its_audit_entry_is_not_made(buyer: Buyer, rival: Rival) -> None:
    """The process dies exactly while it writes the entry; the administrator repeats the request."""
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        putting = await rival.while_waiting(buyer.put_contract("C-1"))
        await rival.kill_waiting_sessions()
        assert (await putting).code == "database_unavailable"
    assert await buyer.statuses() == []
    assert await buyer.entitlement("contract") is None
    assert await rival.rows("SELECT count(*) FROM billing_references") == [(0,)]

    assert (await buyer.put_contract("C-1")).status == 200


async def test_another_reference_cancels_the_one_before(buyer: Buyer) -> None:
    await buyer.put_contract("C-1")
    await buyer.put_contract("C-2", plan_id=PLUS)

    assert sorted(await buyer.statuses()) == [("contract", "active"), ("contract", "cancelled")]
    assert await buyer.entitlement("contract") == (20000, None, 2)

    await buyer.put_contract("C-1")

    assert sorted(await buyer.statuses()) == [("contract", "active"), ("contract", "cancelled")]
    assert await buyer.entitlement("contract") == (5000, None, 3)


async def test_repeating_it_changes_nothing_in_audience(buyer: Buyer) -> None:
    for _ in range(2):
        await buyer.put_contract("C-1")
    assert await buyer.statuses() == [("contract", "active")]
    assert await buyer.entitlement("contract") == (5000, None, 1)


async def test_it_can_be_changed_and_cancelled_and_cancelled_again(buyer: Buyer, end: str) -> None:
    now = buyer.ctx.clock.now()
    await buyer.put_contract("C-1")
    assert (await buyer.put_contract("C-1", period_end=end)).json["period_end"] == end
    assert await buyer.entitlement("contract") == (5000, now + timedelta(days=30), 2)

    for _ in range(2):
        answer = await buyer.put_contract("C-1", status="cancelled")
        assert (answer.status, answer.json["status"]) == (200, "cancelled")

    assert await buyer.entitlement("contract") == (5000, now, 3)
    refused = await buyer.tenant.api.post(
        "/v1/audience/integrations", json=buyer.tenant.integration_body(mode="contract")
    )
    assert refused.code == "entitlement_required"


async def test_audience_is_told_within_a_minute(buyer: Buyer, measuring: Rival, end: str) -> None:
    """A late or repeated job sends what holds then, so one waits for both changes."""
    await buyer.put_contract("C-1", period_end=end)
    await buyer.put_contract("C-2", plan_id=PLUS)
    jobs = await buyer.rival.rows("SELECT args FROM procrastinate_jobs WHERE task_name = 'project_entitlement'")
    assert len([args for (args,) in jobs if args["organization_id"] == buyer.organization_id]) == 1
    for _ in range(2):
        await project_entitlement(buyer.ctx, organization_id=buyer.organization_id, mode="contract")

    rows = await measuring.rows("SELECT mode, monthly_event_quota, ends_at, revision FROM entitlements")
    assert rows == [("contract", 20000, None, 2)]


async def test_what_a_job_carries_during_closure_has_ended(buyer: Buyer, measuring: Rival, clock: FakeClock) -> None:
    now = clock.freeze()
    await buyer.put_contract("C-1")
    await buyer.begin_closing()

    await project_entitlement(buyer.ctx, organization_id=buyer.organization_id, mode="contract")

    assert await measuring.rows("SELECT mode, ends_at FROM entitlements") == [("contract", now)]


async def test_a_reference_belongs_to_one_organisation(buyer: Buyer) -> None:
    other = Buyer(await make_tenant(buyer.tenant.api), buyer.rival, buyer.ctx)
    await other.put_contract("C-1", status="active")
    await other.put_contract("C-1", status="cancelled")

    for status in ("active", "cancelled"):
        answer = await buyer.put_contract("C-1", status=status)
        assert (answer.status, answer.code) == (409, "contract_reference_conflict")
    assert await buyer.statuses() == []


async def test_of_two_organisations_that_take_a_reference_at_once_one_gets_it(buyer: Buyer, rival: Rival) -> None:
    other = Buyer(await make_tenant(buyer.tenant.api), buyer.rival, buyer.ctx)
    async with rival.holding("LOCK TABLE subscriptions IN SHARE MODE"):
        putting = [asyncio.create_task(each.put_contract("C-1")) for each in (buyer, other)]
        await rival.until_someone_waits(2)
    answers = await asyncio.gather(*putting)

    assert sorted(answer.status for answer in answers) == [200, 409]
    assert await rival.rows("SELECT count(*) FROM subscriptions") == [(1,)]


async def test_of_two_contracts_at_once_one_is_active(buyer: Buyer, rival: Rival) -> None:
    async with rival.holding("SELECT pg_advisory_xact_lock(6, hashtext(%s))", buyer.organization_id):
        putting = [asyncio.create_task(buyer.put_contract(reference)) for reference in ("C-1", "C-2")]
        await rival.until_someone_waits(2)
    answers = await asyncio.gather(*putting)

    assert [answer.status for answer in answers] == [200, 200]
    assert sorted(await buyer.statuses()) == [("contract", "active"), ("contract", "cancelled")]


async def test_cancelling_what_is_not_there_is_not_found(buyer: Buyer) -> None:
    answer = await buyer.put_contract("C-1", status="cancelled")
    assert (answer.status, answer.code) == (404, "not_found")
    assert (await buyer.put_contract("C-1")).status == 200, "the reference is free"


@pytest.mark.parametrize("organization_id", ["org_" + "A" * 22, "org_%00"])
async def test_an_unknown_organisation_is_not_found(buyer: Buyer, organization_id: str) -> None:
    body = {"plan_id": CONTRACT_PLAN, "contract_reference": "C-1", "status": "active"}
    path = f"/v1/billing/admin/audience-contracts/{organization_id}"
    answer = await buyer.tenant.api.call("PUT", path, json=body)
    assert (answer.status, answer.code) == (404, "organization_not_found")


@pytest.mark.parametrize(
    ("plan_id", "refusal"), [("plan_unknown", (404, "plan_not_found")), (STUDIO, (422, "validation_failed"))]
)
@pytest.mark.parametrize("status", ["active", "cancelled"])
async def test_the_plan_is_one_of_audience(buyer: Buyer, plan_id: str, refusal: tuple[int, str], status: str) -> None:
    await buyer.put_contract("C-1")
    answer = await buyer.put_contract("C-1", plan_id=plan_id, status=status)
    assert (answer.status, answer.code) == refusal
    assert await buyer.statuses() == [("contract", "active")]


async def test_a_plan_that_is_not_active_is_not_granted_but_stays_and_can_be_cancelled(buyer: Buyer) -> None:
    await buyer.put_contract("C-1", plan_id=PLUS)
    await buyer.rival.run("UPDATE plans SET active = false WHERE id = %s", PLUS)

    answer = await buyer.put_contract("C-2", plan_id=PLUS)

    assert (answer.status, answer.json["errors"][0]["pointer"]) == (422, "/plan_id")
    assert await buyer.entitlement("contract") == (20000, None, 1)
    assert (await buyer.put_contract("C-1", plan_id=PLUS, status="cancelled")).status == 200


async def test_an_active_contract_ends_in_the_future(buyer: Buyer, clock: FakeClock) -> None:
    now = clock.freeze()
    for period_end in (now - timedelta(days=1), now):
        answer = await buyer.put_contract("C-1", period_end=format_timestamp(period_end))
        assert (answer.status, answer.json["errors"][0]["pointer"]) == (422, "/period_end")
    await buyer.put_contract("C-1")
    past = format_timestamp(now - timedelta(days=1))
    assert (await buyer.put_contract("C-1", status="cancelled", period_end=past)).json["period_end"] == past


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"contract_reference": ""}, "/contract_reference"),
        ({"contract_reference": "C" * 161}, "/contract_reference"),
        ({"contract_reference": "C\x001"}, "/contract_reference"),
        ({"status": "expired"}, "/status"),
        ({"period_end": "2099-01-01T00:00:00"}, "/period_end"),
    ],
    ids=str,
)
async def test_a_bad_body_changes_nothing(buyer: Buyer, changes: dict[str, Any], pointer: str) -> None:
    answer = await buyer.put_contract(**changes)
    assert (answer.status, answer.code, answer.json["errors"][0]["pointer"]) == (422, "validation_failed", pointer)
    assert await buyer.statuses() == []


async def test_during_closure_a_contract_can_only_be_cancelled(buyer: Buyer) -> None:
    await buyer.put_contract("C-1")
    await buyer.begin_closing()

    for reference in ("C-1", "C-2"):
        answer = await buyer.put_contract(reference)
        assert (answer.status, answer.code) == (409, "resource_deletion_in_progress")

    assert (await buyer.put_contract("C-1", status="cancelled")).status == 200


async def test_an_integration_that_is_made_while_the_contract_is_replaced_is_made(
    buyer: Buyer, rival: Rival, measuring: Rival
) -> None:
    """Its creation sees the old contract or the new one, and never none."""
    await buyer.put_contract("C-1")
    making = []
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        putting = await rival.while_waiting(buyer.put_contract("C-2", plan_id=PLUS))
        making = [asyncio.create_task(buyer.tenant.make_integration(mode="contract")) for _ in range(3)]
        await rival.until_someone_waits(4)
    made = await asyncio.gather(*making)

    assert (await putting).status == 200
    assert {one["mode"] for one in made} == {"contract"}
    rows = await measuring.rows("SELECT monthly_event_quota, revision FROM entitlements")
    assert rows == [(20000, 2)]


async def test_integrations_made_before_the_replacement_have_the_old_contract(
    buyer: Buyer, rival: Rival, measuring: Rival
) -> None:
    await buyer.put_contract("C-1")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        making = await rival.while_waiting(buyer.tenant.make_integration(mode="contract"))
        putting = asyncio.create_task(buyer.put_contract("C-2", plan_id=PLUS))
        await rival.until_someone_waits(2)
    assert ((await making)["mode"], (await putting).status) == ("contract", 200)
    assert await measuring.rows("SELECT monthly_event_quota, revision FROM entitlements") == [(5000, 1)]

    await project_entitlement(buyer.ctx, organization_id=buyer.organization_id, mode="contract")
    assert await measuring.rows("SELECT monthly_event_quota, revision FROM entitlements") == [(20000, 2)]
