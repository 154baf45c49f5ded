"""Events in any order, late, and together with what happens meanwhile."""

import asyncio
from datetime import timedelta

import pytest
from support.api.core_client import Api
from support.billing.card_purchase import (
    SEVEN_EVENTS,
    begin_purchase,
    deliver,
    status_of,
)
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant


@pytest.fixture
async def invoiced(tenant: Tenant, rival: Rival, api: Api) -> None:
    """The organisation has a third party, and drafts are made."""
    assert (await put_setting(api, "accounting_enable_invoice_sync", True)).status == 200
    await rival.run("INSERT INTO accounting_customers VALUES (%s, 7, now())", tenant.organization_id)


async def test_each_event_five_times_at_once_counts_once(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    events = [purchase.event(kind) for kind in SEVEN_EVENTS]

    answers = await asyncio.gather(*(deliver(tenant.api, event) for event in events for _ in range(5)))

    assert {answer.json["status"] for answer in answers} == {"processed"}
    assert await rival.rows("SELECT count(*), count(DISTINCT provider_reference) FROM subscriptions") == [(1, 1)]
    assert await rival.rows("SELECT count(*) FROM payment_receipts WHERE status = 'processed'") == [(7,)]
    assert len(await rival.audited("billing.entitlement_changed")) == 1


async def test_an_older_event_after_a_newer_one_changes_nothing(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Not even if the provider says something else by then: the event of that is still to come."""
    purchase = await begin_purchase(tenant, rival, card)
    newer = purchase.event("customer.subscription.updated", at=purchase.began_at + timedelta(seconds=10))
    assert await status_of(tenant.api, newer) == "processed"
    before = await rival.rows("SELECT * FROM subscriptions")
    purchase.status = "canceled"
    await purchase.publish(card)

    older = purchase.event("customer.subscription.created", at=purchase.began_at + timedelta(seconds=9))

    assert await status_of(tenant.api, older) == "processed"
    assert await rival.rows("SELECT * FROM subscriptions") == before


async def test_of_two_events_of_one_second_the_second_asks_again(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Their times cannot order them, so what the provider says now counts."""
    purchase = await begin_purchase(tenant, rival, card, status="trialing")
    await status_of(tenant.api, purchase.event("customer.subscription.updated"))
    purchase.status = "active"
    await purchase.publish(card)

    await status_of(tenant.api, purchase.event("customer.subscription.created"))

    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]


async def test_a_paid_session_completes_its_checkout_after_the_subscription_was_cancelled(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    purchase = await begin_purchase(tenant, rival, card, status="canceled")
    ended = purchase.event("customer.subscription.deleted", at=purchase.began_at + timedelta(minutes=5))
    await status_of(tenant.api, ended)

    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"

    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("cancelled",)]


async def test_an_earlier_read_that_ends_later_is_not_applied(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Two deliveries overlap: what the earlier one read is outdated when its turn comes."""
    purchase = await begin_purchase(tenant, rival, card, status="trialing")
    await status_of(tenant.api, purchase.event("checkout.session.completed"))
    await card.hold("card")
    slow = asyncio.create_task(status_of(tenant.api, purchase.event("customer.subscription.updated")))
    await card.until_held("card")  # It has read `trialing`, and the answer is on its way.
    purchase.status = "active"
    await purchase.publish(card)

    assert await status_of(tenant.api, purchase.event("customer.subscription.updated")) == "processed"
    await card.release("card")

    assert await slow == "processed"
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]


async def test_an_older_event_does_not_outdate_the_read_of_a_newer_one_that_it_overlaps(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """It changes nothing, whatever it read, so what the newer one reads must count."""
    purchase = await begin_purchase(tenant, rival, card)
    at = purchase.began_at
    await status_of(tenant.api, purchase.event("customer.subscription.updated", at=at + timedelta(seconds=10)))
    purchase.status = "canceled"
    await purchase.publish(card)
    await card.hold("card")
    ended = purchase.event("customer.subscription.deleted", at=at + timedelta(seconds=20))
    newer = asyncio.create_task(status_of(tenant.api, ended))
    await card.until_held("card")

    older = purchase.event("customer.subscription.created", at=at + timedelta(seconds=5))
    assert await status_of(tenant.api, older) == "processed"
    await card.release("card")

    assert await newer == "processed"
    assert await rival.rows("SELECT status FROM subscriptions") == [("cancelled",)]


async def test_each_paid_invoice_has_one_draft_even_if_its_event_is_late(
    tenant: Tenant, rival: Rival, card: RunningSandbox, invoiced: None
) -> None:
    """The renewal's event overtakes that of the first invoice."""
    assert invoiced is None
    purchase = await begin_purchase(tenant, rival, card)
    first = purchase.event("invoice.paid")
    renewal = purchase.invoice(id="in_MARKrenewal", amount_paid=20_000)
    await purchase.publish(card, latest_invoice=renewal)
    late = purchase.began_at + timedelta(days=30)

    for event in (purchase.event("customer.subscription.updated", at=late), first, first):
        assert await status_of(tenant.api, event) == "processed"

    assert await rival.rows("SELECT amount_minor FROM accounting_outbox ORDER BY amount_minor") == [
        (10_555,),
        (20_000,),
    ]


async def test_without_the_latest_invoice_the_event_itself_shows_what_was_paid(
    tenant: Tenant, rival: Rival, card: RunningSandbox, invoiced: None
) -> None:
    assert invoiced is None
    purchase = await begin_purchase(tenant, rival, card)
    await purchase.publish(card, latest_invoice="in_MARKinvoice")

    await status_of(tenant.api, purchase.event("customer.subscription.updated"))
    assert await rival.rows("SELECT 1 FROM accounting_outbox") == []
    await status_of(tenant.api, purchase.event("invoice.paid"))

    assert await rival.rows("SELECT amount_minor, period_end FROM accounting_outbox") == [(10_555, purchase.period_end)]
