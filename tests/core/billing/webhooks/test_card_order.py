"""Events in any order, late, and together with what happens meanwhile."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from support.card_purchase import (
    SEVEN_EVENTS,
    begin_purchase,
    deliver,
    insert_checkouts,
    make_purchase,
    status_of,
)
from support.card_stand_in import CardStandIn
from support.core_client import Api
from support.platform_settings import put_setting
from support.rival import Rival
from support.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardSession, CardSubscription
from soundmark.core.features.billing.webhooks.card_events import receive_event
from soundmark.core.providers.stripe.shapes import read_session, read_subscription
from soundmark.core.providers.stripe.webhooks import read_event

# An event's type matters only by its object, and for an invoice by whether it was paid. Of the three events of a
# subscription, one stands for all in the complete set; the sampled orders have all seven.
FIVE_KINDS = (
    "checkout.session.completed",
    "checkout.session.async_payment_succeeded",
    "customer.subscription.updated",
    "invoice.paid",
    "invoice.payment_failed",
)
SAMPLES = 20


@dataclass(frozen=True)
class HeldCard:
    """The card provider inside this process: its objects, read as its client reads them, without HTTP."""

    objects: Mapping[str, dict[str, Any]]

    async def read_session(self, reference: str) -> CardSession:
        return read_session(self.objects[reference])

    async def read_subscription(self, reference: str) -> CardSubscription:
        return read_subscription(self.objects[reference])


@pytest.fixture
def fast(work: Context, card: CardStandIn) -> Context:
    """A context whose card provider answers at once, so that hundreds of orders take seconds."""
    return replace(work, card=HeldCard(card.objects))  # type: ignore[arg-type]  # it has the methods that are called


# Everything that each purchase has led to, without what differs between purchases.
END = """
SELECT c.id, c.status, c.subscription_reference IS NOT NULL, c.reread_at, s.plan_id, s.status, s.current_period_end,
       s.cancel_at_period_end, s.last_event_at, d.amount_minor, d.currency, d.description, d.period_end,
       (SELECT array_agg(r.kind) FROM billing_references r WHERE r.subject_id = c.id),
       (SELECT array_agg(DISTINCT p.status) FROM payment_receipts p
         WHERE p.checkout_id = c.id AND p.event_type <> 'checkout.session.completed')
  FROM checkouts c
  FULL JOIN subscriptions s ON s.checkout_id = c.id
  FULL JOIN accounting_outbox d ON d.checkout_id = c.id
"""


async def require_same_end(
    ctx: Context, tenant: Tenant, rival: Rival, card: CardStandIn, orders: Sequence[Sequence[str]], *, status: str
) -> tuple[Any, ...]:
    """Reconcile one purchase for each order of its events, after everything has happened; return their common end."""
    tenant.api.clock.freeze()
    purchases = [make_purchase(tenant, status=status, customer="cus_MARKcustomer") for _ in orders]
    await insert_checkouts(rival, purchases)
    for purchase, order in zip(purchases, orders, strict=True):
        purchase.publish(card)
        for kind in order:
            # Each event has the time of its place in the true order. The session was not paid at first.
            at = purchase.began_at + timedelta(seconds=SEVEN_EVENTS.index(kind))
            changes = {"payment_status": "unpaid"} if kind == "checkout.session.completed" else {}
            event = read_event(purchase.event(kind, at=at, **changes))
            assert event is not None, "it is one"
            await receive_event(ctx, event, body_digest=b"digest")
    ends = {identity: end for identity, *end in await rival.rows(END)}
    first = ends[purchases[0].checkout_id]
    assert len(ends) == len(orders), "each purchase led to one subscription and one draft"
    for purchase, order in zip(purchases, orders, strict=True):
        assert ends[purchase.checkout_id] == first, order
    return tuple(first)


@pytest.fixture
async def invoiced(tenant: Tenant, rival: Rival, api: Api) -> None:
    """The organisation has a third party, and drafts are made."""
    assert (await put_setting(api, "accounting_enable_invoice_sync", True)).status == 200
    await rival.run("INSERT INTO accounting_customers VALUES (%s, 7, now())", tenant.organization_id)


@pytest.mark.usefixtures("invoiced")
async def test_every_order_of_the_kinds_of_events_of_one_purchase_has_the_same_end(
    fast: Context, tenant: Tenant, rival: Rival, card: CardStandIn
) -> None:
    orders = list(permutations(FIVE_KINDS))
    assert len(orders) == 120

    end = await require_same_end(fast, tenant, rival, card, orders, status="canceled")

    assert end[:5] == ("completed", True, None, "plan_codes_studio", "cancelled")
    assert end[8:10] == (10_555, "TND")
    assert end[-2:] == (["card_subscription"], ["processed"])


@pytest.mark.usefixtures("invoiced")
@pytest.mark.parametrize(("status", "ours"), [("active", "active"), ("canceled", "cancelled")])
async def test_sampled_orders_of_all_seven_events_have_the_same_end(
    fast: Context, tenant: Tenant, rival: Rival, card: CardStandIn, status: str, ours: str
) -> None:
    chance = random.Random(20250331)  # noqa: S311 - it chooses orders, and the same ones each time
    orders = [SEVEN_EVENTS, *(chance.sample(SEVEN_EVENTS, k=len(SEVEN_EVENTS)) for _ in range(SAMPLES))]

    end = await require_same_end(fast, tenant, rival, card, orders, status=status)

    assert end[:5] == ("completed", True, None, "plan_codes_studio", ours)


async def test_each_event_five_times_at_once_counts_once(tenant: Tenant, rival: Rival, card: CardStandIn) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    events = [purchase.event(kind) for kind in SEVEN_EVENTS]

    answers = await asyncio.gather(*(deliver(tenant.api, event) for event in events for _ in range(5)))

    assert {answer.json["status"] for answer in answers} == {"processed"}
    assert await rival.rows("SELECT count(*), count(DISTINCT provider_reference) FROM subscriptions") == [(1, 1)]
    assert await rival.rows("SELECT count(*) FROM payment_receipts WHERE status = 'processed'") == [(7,)]
    assert len(await rival.audited("billing.entitlement_changed")) == 1


async def test_an_older_event_after_a_newer_one_changes_nothing(
    tenant: Tenant, rival: Rival, card: CardStandIn
) -> None:
    """Not even if the provider says something else by then: the event of that is still to come."""
    purchase = await begin_purchase(tenant, rival, card)
    newer = purchase.event("customer.subscription.updated", at=purchase.began_at + timedelta(seconds=10))
    assert await status_of(tenant.api, newer) == "processed"
    before = await rival.rows("SELECT * FROM subscriptions")
    purchase.status = "canceled"
    purchase.publish(card)

    older = purchase.event("customer.subscription.created", at=purchase.began_at + timedelta(seconds=9))

    assert await status_of(tenant.api, older) == "processed"
    assert await rival.rows("SELECT * FROM subscriptions") == before


async def test_of_two_events_of_one_second_the_second_asks_again(
    tenant: Tenant, rival: Rival, card: CardStandIn
) -> None:
    """Their times cannot order them, so what the provider says now counts."""
    purchase = await begin_purchase(tenant, rival, card, status="trialing")
    await status_of(tenant.api, purchase.event("customer.subscription.updated"))
    purchase.status = "active"
    purchase.publish(card)

    await status_of(tenant.api, purchase.event("customer.subscription.created"))

    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]


async def test_a_paid_session_completes_its_checkout_after_the_subscription_was_cancelled(
    tenant: Tenant, rival: Rival, card: CardStandIn
) -> None:
    purchase = await begin_purchase(tenant, rival, card, status="canceled")
    ended = purchase.event("customer.subscription.deleted", at=purchase.began_at + timedelta(minutes=5))
    await status_of(tenant.api, ended)

    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"

    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("cancelled",)]


async def test_an_earlier_read_that_ends_later_is_not_applied(tenant: Tenant, rival: Rival, card: CardStandIn) -> None:
    """Two deliveries overlap: what the earlier one read is outdated when its turn comes."""
    purchase = await begin_purchase(tenant, rival, card, status="trialing")
    await status_of(tenant.api, purchase.event("checkout.session.completed"))
    card.worked.clear()
    card.faults.append("slow")
    slow = asyncio.create_task(status_of(tenant.api, purchase.event("customer.subscription.updated")))
    await card.worked.wait()  # It has read `trialing`, and the answer is on its way.
    purchase.status = "active"
    purchase.publish(card)

    assert await status_of(tenant.api, purchase.event("customer.subscription.updated")) == "processed"
    card.release.set()

    assert await slow == "processed"
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]


async def test_each_paid_invoice_has_one_draft_even_if_its_event_is_late(
    tenant: Tenant, rival: Rival, card: CardStandIn, invoiced: None
) -> None:
    """The renewal's event overtakes that of the first invoice."""
    assert invoiced is None
    purchase = await begin_purchase(tenant, rival, card)
    first = purchase.event("invoice.paid")
    renewal = purchase.invoice(id="in_MARKrenewal", amount_paid=20_000)
    card.objects[purchase.subscription_id] = purchase.subscription(latest_invoice=renewal)
    late = purchase.began_at + timedelta(days=30)

    for event in (purchase.event("customer.subscription.updated", at=late), first, first):
        assert await status_of(tenant.api, event) == "processed"

    assert await rival.rows("SELECT amount_minor FROM accounting_outbox ORDER BY amount_minor") == [
        (10_555,),
        (20_000,),
    ]


async def test_without_the_latest_invoice_the_event_itself_shows_what_was_paid(
    tenant: Tenant, rival: Rival, card: CardStandIn, invoiced: None
) -> None:
    assert invoiced is None
    purchase = await begin_purchase(tenant, rival, card)
    card.objects[purchase.subscription_id] = purchase.subscription(latest_invoice="in_MARKinvoice")

    await status_of(tenant.api, purchase.event("customer.subscription.updated"))
    assert await rival.rows("SELECT 1 FROM accounting_outbox") == []
    await status_of(tenant.api, purchase.event("invoice.paid"))

    assert await rival.rows("SELECT amount_minor, period_end FROM accounting_outbox") == [(10_555, purchase.period_end)]
