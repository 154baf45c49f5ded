"""What the local provider's answer about a payment means: only its exact words, and only for exactly this payment."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Api
from support.billing.local_purchase import LocalPurchase, begin_local_purchase, notify_of
from support.billing.offers import AMOUNT_MINOR
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

ENDS = "SELECT c.status, r.status FROM checkouts c JOIN payment_receipts r ON r.checkout_id = c.id"


@pytest.fixture
async def purchase(tenant: Tenant, rival: Rival, local: RunningSandbox) -> LocalPurchase:
    """A payment at the local provider that succeeded."""
    return await begin_local_purchase(tenant, rival, local)


async def test_a_payment_grants_the_months_that_were_bought(
    api: Api, tenant: Tenant, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    clock.frozen_at = datetime(2027, 1, 31, 12, tzinfo=UTC)
    purchase = await begin_local_purchase(tenant, rival, local)

    assert (await notify_of(api, purchase)).json == {"status": "processed"}

    assert await rival.rows("SELECT plan_id, provider, status, current_period_end FROM subscriptions") == [
        ("plan_codes_studio", "local", "active", datetime(2028, 1, 31, 12, tzinfo=UTC))
    ]
    assert await rival.rows("SELECT status, completed_at, reread_at FROM checkouts") == [
        ("completed", clock.now(), None)
    ]


async def test_each_payment_of_a_plan_extends_it_and_has_a_draft_of_its_own_period(
    api: Api, tenant: Tenant, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    await put_setting(api, "accounting_enable_invoice_sync", True)
    await rival.run("INSERT INTO accounting_customers VALUES (%s, 7, now())", tenant.organization_id)
    now = clock.freeze()
    for _ in range(2):
        await notify_of(api, await begin_local_purchase(tenant, rival, local))

    (period,) = await rival.rows("SELECT current_period_end FROM subscriptions")
    drafts = await rival.rows("SELECT period_start, period_end, amount_minor FROM accounting_outbox ORDER BY 1")
    assert drafts == [
        (now, drafts[1][0], AMOUNT_MINOR),
        (drafts[0][1], period[0], AMOUNT_MINOR),
    ]


@pytest.mark.parametrize(("theirs", "ours"), [("FAILURE", "failed"), ("EXPIRED", "expired")])
async def test_a_payment_that_failed_or_expired_ends_its_checkout(
    api: Api, tenant: Tenant, rival: Rival, local: RunningSandbox, theirs: str, ours: str
) -> None:
    purchase = await begin_local_purchase(tenant, rival, local, status=theirs)

    assert (await notify_of(api, purchase)).json == {"status": "processed"}
    assert await rival.rows(ENDS) == [(ours, "processed")]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []


UNDECIDED = ["PENDING", "success", "SUCCESS ", ""]


@pytest.mark.parametrize("status", UNDECIDED)
async def test_any_other_status_stays_pending(
    api: Api, tenant: Tenant, rival: Rival, local: RunningSandbox, status: str
) -> None:
    """A status in another case is another status."""
    purchase = await begin_local_purchase(tenant, rival, local, status=status)

    assert (await notify_of(api, purchase)).json == {"status": "pending"}
    assert await rival.rows(ENDS) == [("pending", "pending")]


async def test_a_payment_that_the_provider_has_forgotten_stays_pending(
    api: Api, rival: Rival, local: RunningSandbox, purchase: LocalPurchase
) -> None:
    await local.control("/reset")

    assert (await notify_of(api, purchase)).json == {"status": "pending"}
    assert await rival.rows(ENDS) == [("pending", "pending")]


DIFFERENT: dict[str, dict[str, Any]] = {
    "less": {"amount": AMOUNT_MINOR - 1},
    "more": {"amount": AMOUNT_MINOR + 1},
    "a number as text": {"amount": str(AMOUNT_MINOR)},
    "no amount": {"amount": None},
    "another checkout": {"developer_tracking_id": "bco_of_somebody_else"},
    "no checkout": {"developer_tracking_id": None},
    "a list": {"developer_tracking_id": ["bco_"]},
}


@pytest.mark.parametrize("name", DIFFERENT)
async def test_an_answer_about_another_payment_is_not_verified(
    api: Api, tenant: Tenant, rival: Rival, local: RunningSandbox, name: str
) -> None:
    """Exactly this amount, as an integer, and exactly our tracking id. Nothing is granted, nothing ends."""
    purchase = await begin_local_purchase(tenant, rival, local, status="SUCCESS", **DIFFERENT[name])

    with capture_logs() as logs:
        answer = await notify_of(api, purchase)

    assert (answer.status, answer.code) == (422, "payment_not_verified")
    assert "local_payment_disagrees" in [line["event"] for line in logs]
    assert await rival.rows(ENDS) == [("pending", "pending")]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []


async def test_a_tracking_id_that_is_missing_is_not_verified(
    api: Api, rival: Rival, local: RunningSandbox, purchase: LocalPurchase
) -> None:
    await local.misbehave("local", "altered", merge={"result": {"developer_tracking_id": None}})

    assert (await notify_of(api, purchase)).code == "payment_not_verified"
    assert await rival.rows(ENDS) == [("pending", "pending")]


async def test_an_answer_of_another_media_type_is_not_verified(
    api: Api, rival: Rival, local: RunningSandbox, purchase: LocalPurchase
) -> None:
    await local.misbehave("local", "html")

    assert (await notify_of(api, purchase)).code == "payment_not_verified"
    assert await rival.rows(ENDS) == [("pending", "pending")]


FAULTS = ["refused", "html_as_json", "list", "half_body", "lost_answer"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_provider_that_does_not_answer_as_documented_is_unavailable(
    api: Api, rival: Rival, local: RunningSandbox, purchase: LocalPurchase, fault: str
) -> None:
    """It is asked once: the provider bans callers that insist."""
    await local.misbehave("local", fault)

    answer = await notify_of(api, purchase)

    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert len(await local.calls("local")) == 1
    assert await rival.rows(ENDS) == [("pending", "pending")]
    assert (await notify_of(api, purchase)).json == {"status": "processed"}


async def test_money_that_was_taken_counts_after_the_checkout_had_ended(
    api: Api, rival: Rival, purchase: LocalPurchase
) -> None:
    for status in ("expired", "failed"):
        await rival.run("UPDATE checkouts SET status = %s, completed_at = NULL", status)
        await rival.run("DELETE FROM payment_receipts")
        assert (await notify_of(api, purchase)).json == {"status": "processed"}
        assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]


async def test_five_notifications_at_once_count_once(api: Api, rival: Rival, purchase: LocalPurchase) -> None:
    answers = await asyncio.gather(*(notify_of(api, purchase) for _ in range(5)))

    assert [answer.json for answer in answers] == [{"status": "processed"}] * 5
    assert await rival.rows("SELECT count(*) FROM subscriptions") == [(1,)]
    assert await rival.rows("SELECT current_period_end < now() + interval '13 months' FROM subscriptions") == [(True,)]


async def test_during_a_closure_nothing_is_granted_and_a_person_learns_of_the_payment(
    api: Api, tenant: Tenant, rival: Rival, purchase: LocalPurchase
) -> None:
    await rival.run("UPDATE organizations SET deletion_requested_at = now() WHERE id = %s", tenant.organization_id)

    with capture_logs() as logs:
        assert (await notify_of(api, purchase)).json == {"status": "processed"}

    assert [line["checkout_id"] for line in logs if line["event"] == "payment_during_closure"] == [purchase.checkout_id]
    assert await rival.rows(ENDS) == [("completed", "processed")]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []
