"""Every order of the seven events of one purchase has the same end."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import factorial
from typing import Any

import pytest
from support.api.core_client import Api
from support.billing.card_purchase import (
    SEVEN_EVENTS,
    CardPurchase,
    begin_purchase,
    insert_checkouts,
    make_purchase,
    status_of,
)
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardSession, CardSubscription
from soundmark.core.features.billing.webhooks.card_events import receive_event
from soundmark.core.providers.stripe.shapes import read_session, read_subscription
from soundmark.core.providers.stripe.webhooks import read_event

SAMPLES = 10
UNPAID = "checkout.session.completed"  # The session was not paid at first.
# All that is stored of each purchase, without what differs between purchases: ids and references.
STATES = """
SELECT c.id,
       to_jsonb(c) - '{id, provider_reference, subscription_reference}'::text[] || jsonb_build_object(
           'is_bound', c.subscription_reference IS NOT NULL,
           'subscriptions', (
               SELECT jsonb_agg(to_jsonb(s) - '{id, checkout_id, provider_reference}'::text[])
                 FROM subscriptions s WHERE s.checkout_id = c.id),
           'drafts', (
               SELECT jsonb_agg(to_jsonb(d) - '{id, subscription_id, checkout_id, payment_digest}'::text[])
                 FROM accounting_outbox d WHERE d.checkout_id = c.id),
           'jobs', (
               SELECT count(*) FROM accounting_outbox d JOIN procrastinate_jobs j ON j.args ->> 'outbox_id' = d.id
                WHERE d.checkout_id = c.id),
           'receipts', (
               SELECT jsonb_object_agg(r.event_type, to_jsonb(r) - '{event_id, event_type, checkout_id}'::text[])
                 FROM payment_receipts r WHERE r.checkout_id = c.id),
           'references', (SELECT jsonb_agg(b.kind) FROM billing_references b WHERE b.subject_id = c.id),
           'entries', (
               SELECT count(*) FROM audit_entries a
                 JOIN subscriptions s ON s.id = a.metadata::jsonb ->> 'subscription_id'
                WHERE s.checkout_id = c.id))
  FROM checkouts c
 WHERE c.id = ANY(%s)
"""


@dataclass(frozen=True)
class HeldCard:
    """The card provider inside this process: its objects, read as its client reads them, without HTTP."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def read_session(self, reference: str) -> CardSession:
        return read_session(self.objects[reference])

    async def read_subscription(self, reference: str) -> CardSubscription:
        return read_subscription(self.objects[reference])


@pytest.fixture
def fast(work: Context) -> Context:
    """A context whose card provider answers at once."""
    return replace(work, card=HeldCard())  # type: ignore[arg-type]  # it has the methods that are called


@pytest.fixture
async def invoiced(tenant: Tenant, rival: Rival, api: Api) -> None:
    """The organisation has a third party, and drafts are made."""
    assert (await put_setting(api, "accounting_enable_invoice_sync", True)).status == 200
    await rival.run("INSERT INTO accounting_customers VALUES (%s, 7, now())", tenant.organization_id)


@dataclass
class Reached:
    """What some orders of some of the events lead to: one of these orders, and how many they are."""

    order: tuple[str, ...]
    state: dict[str, Any]
    orders_count: int = 0


async def deliver_in_order(ctx: Context, purchase: CardPurchase, order: Sequence[str]) -> None:
    """Reconcile events of a purchase after everything has happened. Each has the time of its place in SEVEN_EVENTS."""
    assert isinstance(ctx.card, HeldCard)
    ctx.card.objects[purchase.session_id] = purchase.session()
    ctx.card.objects[purchase.subscription_id] = purchase.subscription()
    for kind in order:
        at = purchase.began_at + timedelta(seconds=SEVEN_EVENTS.index(kind))
        event = read_event(purchase.event(kind, at=at, **({"payment_status": "unpaid"} if kind == UNPAID else {})))
        assert event is not None, "it is one"
        await receive_event(ctx, event, body_digest=b"digest")


async def follow(
    ctx: Context, tenant: Tenant, rival: Rival, reached: Sequence[Reached], *, status: str
) -> list[Reached]:
    """Deliver to each state each event that is still missing; return the states that this leads to."""
    further = [
        (before, (*before.order, kind)) for before in reached for kind in SEVEN_EVENTS if kind not in before.order
    ]
    purchases = [make_purchase(tenant, status=status, customer="cus_MARKcustomer") for _ in further]
    await insert_checkouts(rival, purchases)
    for purchase, (_, order) in zip(purchases, further, strict=True):
        await deliver_in_order(ctx, purchase, order)
    states = dict(await rival.rows(STATES, [purchase.checkout_id for purchase in purchases]))
    found: dict[str, Reached] = {}
    for purchase, (before, order) in zip(purchases, further, strict=True):
        # The numbers of reads decide only between reads that overlap, which `test_card_order.py` tests.
        state = {name: value for name, value in states[purchase.checkout_id].items() if name != "read_applied"}
        key = json.dumps([sorted(order), state], sort_keys=True)
        found.setdefault(key, Reached(order, state)).orders_count += before.orders_count
    return list(found.values())


@pytest.mark.usefixtures("invoiced")
async def test_every_order_of_the_seven_events_has_the_same_end(fast: Context, tenant: Tenant, rival: Rival) -> None:
    """All 5,040 orders, although only some hundred deliveries differ.

    An event is a trigger: what is applied is what the provider says when it is asked, which is the same for every order
    here. So an order can matter only through what earlier events have stored. Two orders of the same events that have
    stored the same therefore have the same future, and one of them stands for both. This search delivers to every state
    that is reached each event that is still missing, and counts the orders that lead to each state.
    """
    now = tenant.api.clock.freeze()
    reached = [Reached((), {}, orders_count=1)]
    for _ in SEVEN_EVENTS:
        reached = await follow(fast, tenant, rival, reached, status="canceled")

    ((end, orders_count),) = ((each.state, each.orders_count) for each in reached)
    assert orders_count == factorial(7) == 5040
    assert (end["status"], end["is_bound"], end["reread_at"]) == ("completed", True, None)
    (subscription,), (draft,) = end["subscriptions"], end["drafts"]
    newest = now.replace(microsecond=0) + timedelta(seconds=6)
    assert (subscription["plan_id"], subscription["status"]) == ("plan_codes_studio", "cancelled")
    paid_through = now.replace(microsecond=0) + timedelta(days=30)
    assert datetime.fromisoformat(subscription["paid_through"]) == paid_through
    assert datetime.fromisoformat(subscription["last_event_at"]) == newest
    assert (draft["amount_minor"], draft["currency"], draft["status"]) == (10_555, "TND", "pending")
    assert (end["jobs"], end["entries"], end["references"]) == (1, 1, ["card_subscription"])
    statuses = {kind: receipt["status"] for kind, receipt in end["receipts"].items()}
    assert statuses == dict.fromkeys(SEVEN_EVENTS, "processed") | {UNPAID: "pending"}


@pytest.mark.parametrize(("status", "ours"), [("active", "active"), ("canceled", "cancelled")])
async def test_sampled_orders_through_the_api_have_the_same_end(
    tenant: Tenant, rival: Rival, card: RunningSandbox, status: str, ours: str
) -> None:
    """Signed, delivered and read from the provider over HTTP."""
    chance = random.Random(20250331)  # noqa: S311 - it chooses orders, and the same ones each time
    for order in (SEVEN_EVENTS, *(chance.sample(SEVEN_EVENTS, k=len(SEVEN_EVENTS)) for _ in range(SAMPLES))):
        purchase = await begin_purchase(tenant, rival, card, status=status)
        for kind in order:
            at = purchase.began_at + timedelta(seconds=SEVEN_EVENTS.index(kind))
            assert await status_of(tenant.api, purchase.event(kind, at=at)) == "processed"
    assert await rival.rows("SELECT DISTINCT status FROM checkouts") == [("completed",)]
    assert await rival.rows("SELECT status, count(*) FROM subscriptions GROUP BY status") == [(ours, SAMPLES + 1)]
