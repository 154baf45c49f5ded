"""Events that race each other, a closure, and a deletion."""

import asyncio

from structlog.testing import capture_logs
from support.billing.card_purchase import CardPurchase, deliver, status_of
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.closures import list_mentions, organization_of
from support.tenancy.tenant import Tenant

CLOSING = "UPDATE organizations SET deletion_requested_at = now() WHERE id = %s"


async def test_during_a_closure_nothing_is_granted_and_a_person_learns_of_the_payment(
    tenant: Tenant, rival: Rival, purchase: CardPurchase
) -> None:
    await rival.run(CLOSING, tenant.organization_id)

    with capture_logs() as logs:
        assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"

    assert [line["checkout_id"] for line in logs if line["event"] == "payment_during_closure"] == [purchase.checkout_id]
    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []
    assert await rival.rows("SELECT 1 FROM accounting_outbox") == []


async def test_a_closure_that_is_requested_while_the_provider_is_asked_is_seen(
    tenant: Tenant, rival: Rival, card: RunningSandbox, purchase: CardPurchase
) -> None:
    await card.hold("card")
    delivering = asyncio.create_task(status_of(tenant.api, purchase.event("invoice.paid")))
    await card.until_held("card")
    await rival.run(CLOSING, tenant.organization_id)
    await card.release("card")

    assert await delivering == "processed"
    assert await rival.rows("SELECT 1 FROM subscriptions") == []


async def test_a_closure_waits_for_the_event_that_is_being_applied(
    tenant: Tenant, rival: Rival, card: RunningSandbox, purchase: CardPurchase
) -> None:
    """It is marked after the subscription is there, for the gates to see."""
    await card.hold("card")
    delivering = asyncio.create_task(status_of(tenant.api, purchase.event("invoice.paid")))
    await card.until_held("card")
    async with rival.holding("SELECT FROM checkouts FOR NO KEY UPDATE"):
        await card.release("card")
        await rival.until_someone_waits()
        closing = asyncio.create_task(rival.run(CLOSING, tenant.organization_id))
        await rival.until_someone_waits(2)

    assert (await delivering, await closing) == ("processed", 1)
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]


async def test_an_event_of_a_deleted_organisation_brings_nothing_back(
    tenant: Tenant, rival: Rival, purchase: CardPurchase
) -> None:
    event = purchase.event("checkout.session.completed")
    await rival.run("UPDATE checkouts SET status = 'expired', reread_at = NULL")
    await organization_of(tenant).certificate()

    assert await status_of(tenant.api, event) == "ignored"

    kept = {"deletion_certificates", "purges"}
    assert set(await list_mentions(rival, tenant.organization_id)) - kept == set()
    assert await rival.rows("SELECT organization_id, checkout_id, status FROM payment_receipts") == [
        (None, None, "ignored")
    ]


async def test_an_organisation_that_is_deleted_while_the_provider_is_asked_stays_deleted(
    tenant: Tenant, rival: Rival, card: RunningSandbox, purchase: CardPurchase
) -> None:
    await rival.run("UPDATE checkouts SET status = 'expired', reread_at = NULL")
    await card.hold("card")
    delivering = asyncio.create_task(status_of(tenant.api, purchase.event("invoice.paid")))
    await card.until_held("card")
    await organization_of(tenant).certificate()
    await card.release("card")

    assert await delivering == "ignored"
    assert await rival.rows("SELECT 1 FROM payment_receipts") == []
    assert await rival.rows("SELECT 1 FROM organizations") == []


async def test_two_deliveries_of_one_event_apply_it_once(tenant: Tenant, rival: Rival, purchase: CardPurchase) -> None:
    event = purchase.event("checkout.session.completed")
    async with rival.holding("SELECT FROM checkouts FOR UPDATE"):
        # Both wait with their read's number to take.
        delivering = [asyncio.create_task(deliver(tenant.api, event)) for _ in range(2)]
        await rival.until_someone_waits()

    answers = await asyncio.gather(*delivering)

    assert [answer.json for answer in answers] == [{"status": "processed"}] * 2
    assert await rival.rows("SELECT count(*) FROM subscriptions") == [(1,)]
    assert len(await rival.audited("billing.entitlement_changed")) == 1
