"""`POST /v1/billing/webhooks/card`: what an event leads to."""

import json
from datetime import timedelta
from typing import Any

import pytest
from support.billing.card_purchase import SEVEN_EVENTS, begin_purchase, deliver, put_object, status_of
from support.billing.local_purchase import begin_local_purchase, notify_of
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.suspension import suspend
from support.tenancy.tenant import Tenant

SUBSCRIPTIONS = (
    "SELECT plan_id, product, provider, status, current_period_end, checkout_id, provider_reference FROM subscriptions"
)
RECEIPTS = "SELECT event_type, status, processed_at IS NOT NULL, checkout_id FROM payment_receipts ORDER BY received_at"


@pytest.mark.parametrize("kind", [kind for kind in SEVEN_EVENTS if kind != "invoice.payment_failed"])
async def test_each_event_of_a_paid_purchase_grants_what_the_provider_says(
    tenant: Tenant, rival: Rival, card: RunningSandbox, kind: str
) -> None:
    purchase = await begin_purchase(tenant, rival, card)

    assert await status_of(tenant.api, purchase.event(kind)) == "processed"

    assert await rival.rows(SUBSCRIPTIONS) == [
        (
            *("plan_codes_studio", "codes", "card", "active", purchase.period_end),
            *(purchase.checkout_id, purchase.subscription_id),
        )
    ]
    assert await rival.rows("SELECT status, reread_at FROM checkouts") == [("completed", None)]
    assert await rival.rows("SELECT customer_reference FROM card_customers") == [(purchase.customer,)]
    assert await rival.rows(RECEIPTS) == [(kind, "processed", True, purchase.checkout_id)]


async def test_a_payment_of_a_suspended_organisation_counts(
    tenant: Tenant, rival: Rival, card: RunningSandbox, local: RunningSandbox
) -> None:
    """The money was taken, and what it buys is there once the organisation is restored."""
    by_card = await begin_purchase(tenant, rival, card)
    by_transfer = await begin_local_purchase(tenant, rival, local)
    assert (await suspend(tenant.api, tenant.organization_id)).status == 200

    assert await status_of(tenant.api, by_card.event("checkout.session.completed")) == "processed"
    assert (await notify_of(tenant.api, by_transfer)).json == {"status": "processed"}

    assert await rival.rows("SELECT DISTINCT status FROM checkouts") == [("completed",)]
    assert await rival.rows("SELECT provider, status FROM subscriptions ORDER BY provider") == [
        ("card", "active"),
        ("local", "active"),
    ]


async def test_a_failed_first_invoice_waits_for_the_payment(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """Nothing is granted while the provider says that the invoice is open, whatever the subscription's status is."""
    purchase = await begin_purchase(tenant, rival, card, is_paid=False, status="active")

    assert await status_of(tenant.api, purchase.event("invoice.payment_failed")) == "pending"

    assert await rival.rows(SUBSCRIPTIONS) == []
    assert await rival.rows("SELECT status FROM checkouts") == [("pending",)]
    assert await rival.rows("SELECT status, reread_at IS NOT NULL FROM payment_receipts") == [("pending", True)]


async def test_an_unpaid_session_grants_nothing_and_asks_nobody(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    purchase = await begin_purchase(tenant, rival, card, is_paid=False)

    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "pending"

    assert (await card.calls("card"), await rival.rows(SUBSCRIPTIONS)) == ([], [])


async def test_an_asynchronous_payment_grants_once_it_has_succeeded(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    purchase = await begin_purchase(tenant, rival, card, is_paid=False, status="incomplete")
    first = await status_of(tenant.api, purchase.event("checkout.session.completed"))
    purchase.is_paid, purchase.status = True, "active"
    await purchase.publish(card)

    second = await status_of(tenant.api, purchase.event("checkout.session.async_payment_succeeded"))

    assert (first, second) == ("pending", "processed")
    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]


async def test_a_session_without_anything_to_pay_counts_as_paid(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    purchase = await begin_purchase(tenant, rival, card, status="trialing")
    event = purchase.event("checkout.session.completed", payment_status="no_payment_required")

    assert await status_of(tenant.api, event) == "processed"
    assert await rival.rows("SELECT status FROM subscriptions") == [("trialing",)]


async def test_an_open_renewal_does_not_hide_that_the_session_was_paid(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Core was away for a month: the first event that it sees is that the renewal failed."""
    purchase = await begin_purchase(tenant, rival, card, status="past_due")
    renewal = purchase.invoice(id="in_MARKrenewal", status="open", amount_paid=0)
    await purchase.publish(card, latest_invoice=renewal)

    event = purchase.event("customer.subscription.updated", at=purchase.period_end)

    assert await status_of(tenant.api, event) == "processed"
    assert await rival.rows("SELECT status FROM subscriptions") == [("past_due",)]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("past_due", "past_due"), ("canceled", "cancelled")],
)
async def test_the_status_is_what_the_provider_says_when_asked_not_what_the_event_says(
    tenant: Tenant, rival: Rival, card: RunningSandbox, theirs: str, ours: str
) -> None:
    purchase = await begin_purchase(tenant, rival, card, status=theirs)

    assert await status_of(tenant.api, purchase.event("invoice.paid", status="paid")) == "processed"
    assert await rival.rows("SELECT status FROM subscriptions") == [(ours,)]


@pytest.mark.parametrize("status", ["paused", "a_status_of_next_year"])
async def test_a_status_that_says_nothing_to_us_grants_nothing(
    tenant: Tenant, rival: Rival, card: RunningSandbox, status: str
) -> None:
    """The first payment completes the checkout all the same; a later event is ignored."""
    purchase = await begin_purchase(tenant, rival, card, status=status)

    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"
    assert await status_of(tenant.api, purchase.event("customer.subscription.updated")) == "ignored"

    assert await rival.rows("SELECT status FROM subscriptions") == []
    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]


async def test_a_subscription_that_was_never_paid_is_ignored_when_it_ends(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    purchase = await begin_purchase(tenant, rival, card, is_paid=False, status="incomplete_expired")

    assert await status_of(tenant.api, purchase.event("customer.subscription.deleted")) == "ignored"
    assert await rival.rows("SELECT status FROM checkouts") == [("pending",)]


async def test_objects_of_the_older_shape_are_read(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """The version of an event is that of the endpoint's settings, not of our requests. API v1, "Versioning", 6."""
    purchase = await begin_purchase(tenant, rival, card)
    period_end = int(purchase.period_end.timestamp())
    items = {"data": [{"price": {"id": purchase.price}}]}
    old = purchase.subscription(items=items, current_period_end=period_end, latest_invoice="in_MARKinvoice")
    await put_object(card, f"/v1/subscriptions/{purchase.subscription_id}", old)
    invoice = purchase.invoice(
        subscription=purchase.subscription_id, subscription_details={"metadata": purchase.metadata}
    )
    del invoice["parent"], invoice["lines"]
    event = purchase.event("invoice.paid")
    event["data"]["object"] = invoice

    assert await status_of(tenant.api, event) == "processed"
    assert await rival.rows("SELECT status, current_period_end FROM subscriptions") == [("active", purchase.period_end)]


async def test_an_invoice_without_metadata_is_found_by_its_subscription(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Of the shape before basil, and of a subscription that was paid before."""
    purchase = await begin_purchase(tenant, rival, card)
    await status_of(tenant.api, purchase.event("checkout.session.completed"))
    purchase.changes = {"cancel_at_period_end": True}
    await purchase.publish(card)
    event = purchase.event("invoice.paid", at=purchase.began_at + timedelta(seconds=1))
    event["data"]["object"] |= {
        "parent": None,
        "subscription": {"id": purchase.subscription_id, "object": "subscription"},
    }

    assert await status_of(tenant.api, event) == "processed"
    assert await rival.rows("SELECT cancel_at_period_end FROM subscriptions") == [(True,)]
    assert await rival.rows("SELECT DISTINCT checkout_id FROM payment_receipts") == [(purchase.checkout_id,)]


@pytest.mark.parametrize("status", ["failed", "expired"])
async def test_money_that_was_taken_completes_a_checkout_that_had_ended(
    tenant: Tenant, rival: Rival, card: RunningSandbox, status: str
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    await rival.run("UPDATE checkouts SET status = %s", status)

    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"
    assert await rival.rows("SELECT c.status, s.status FROM checkouts c JOIN subscriptions s ON true") == [
        ("completed", "active")
    ]


async def test_a_processed_event_is_answered_without_asking_the_provider(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    event = purchase.event("checkout.session.completed")
    await status_of(tenant.api, event)
    asked = len(await card.calls("card"))
    before = await rival.rows("SELECT * FROM payment_receipts")

    assert [await status_of(tenant.api, event) for _ in range(3)] == ["processed"] * 3

    assert (len(await card.calls("card")), await rival.rows("SELECT * FROM payment_receipts")) == (asked, before)


NO_EVENTS: list[Any] = [
    [],
    7,
    None,
    "evt_1",
    {},
    {"id": "evt_1", "object": "checkout.session", "type": "invoice.paid", "created": 1, "data": {"object": {}}},
    {"id": "ev'; --", "object": "event", "type": "invoice.paid", "created": 1, "data": {"object": {}}},
    {"id": "evt_" + "x" * 300, "object": "event", "type": "invoice.paid", "created": 1, "data": {"object": {}}},
    {"id": "evt_1", "object": "event", "type": "invoice paid\n", "created": 1, "data": {"object": {}}},
    {"id": "evt_1", "object": "event", "type": "invoice.paid", "created": "1", "data": {"object": {}}},
    {"id": "evt_1", "object": "event", "type": "invoice.paid", "created": 10**15, "data": {"object": {}}},
    {"id": "evt_1", "object": "event", "type": "invoice.paid", "created": 1, "data": {"object": []}},
    {"id": "evt_1", "object": "event", "type": "invoice.paid", "created": 1},
]


async def test_what_is_no_event_is_ignored(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """It has no id under which it could be recorded."""
    assert [await status_of(tenant.api, event) for event in NO_EVENTS] == ["ignored"] * len(NO_EVENTS)
    assert (await card.calls("card"), await rival.rows(RECEIPTS)) == ([], [])


@pytest.mark.parametrize("kind", ["checkout.session.expired", "ping"])
async def test_a_type_that_is_not_listed_is_ignored_and_recorded(
    tenant: Tenant, rival: Rival, card: RunningSandbox, kind: str
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    event = purchase.event("checkout.session.completed") | {"type": kind}

    assert await status_of(tenant.api, event) == "ignored"
    assert (await card.calls("card"), await rival.rows(RECEIPTS)) == ([], [(kind, "ignored", True, None)])


async def test_objects_that_are_not_ours_are_ignored_and_recorded(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """The provider's account may sell other things too."""
    purchase = await begin_purchase(tenant, rival, card)

    statuses = [await status_of(tenant.api, purchase.event(kind, metadata={}, parent=None)) for kind in SEVEN_EVENTS]

    assert statuses == ["ignored"] * 7
    assert await card.calls("card") == []
    assert await rival.rows("SELECT DISTINCT status, organization_id FROM payment_receipts") == [("ignored", None)]


@pytest.mark.parametrize("changes", [{"object": "charge"}, {"metadata": ["svc_checkout_id"]}], ids=str)
async def test_an_object_that_cannot_be_read_is_ignored(
    tenant: Tenant, rival: Rival, card: RunningSandbox, changes: dict[str, Any]
) -> None:
    """The job that asks about pending checkouts is what remains."""
    purchase = await begin_purchase(tenant, rival, card)

    assert await status_of(tenant.api, purchase.event("checkout.session.completed", **changes)) == "ignored"
    assert await rival.rows("SELECT status FROM checkouts") == [("pending",)]


async def test_only_named_members_of_an_event_are_read(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """Webhooks are open objects: the provider adds members at any time."""
    purchase = await begin_purchase(tenant, rival, card)
    event = purchase.event("checkout.session.completed", adaptive_pricing={"enabled": False}, ui_mode="hosted")
    event |= {"context": None, "nested": {"a": [{"b": 1.5e300}]}}

    assert await status_of(tenant.api, event) == "processed"


async def test_an_event_before_its_checkout_is_there_is_ignored_and_counts_when_it_is_delivered_again(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """As when a standby took over that had not received the checkout's row yet."""
    purchase = await begin_purchase(tenant, rival, card)
    event = purchase.event("checkout.session.completed")
    async with rival.committing("UPDATE checkouts SET id = 'bco_not_there_yet'"):
        pass

    first = await status_of(tenant.api, event)
    await rival.run("UPDATE checkouts SET id = %s", purchase.checkout_id)
    await card.misbehave("card", "rate_limited")
    assert (await deliver(tenant.api, event)).code == "payment_provider_unavailable"
    assert await rival.rows(RECEIPTS) == [("checkout.session.completed", "pending", False, purchase.checkout_id)]
    second = await status_of(tenant.api, event)

    assert (first, second) == ("ignored", "processed")
    assert await rival.rows(RECEIPTS) == [("checkout.session.completed", "processed", True, purchase.checkout_id)]


async def test_the_receipt_holds_the_named_facts_only(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    event = purchase.event("invoice.paid")

    await deliver(tenant.api, event)

    ((row,),) = await rival.rows("SELECT to_jsonb(r) - 'received_at' - 'processed_at' FROM payment_receipts r")
    digest = row.pop("body_digest")
    ((expected,),) = await rival.rows("SELECT '\\x' || encode(sha256(%s), 'hex')", json.dumps(event).encode())
    assert digest == expected
    assert row == {
        "provider": "card",
        "event_id": event["id"],
        "event_type": "invoice.paid",
        "organization_id": tenant.organization_id,
        "checkout_id": purchase.checkout_id,
        "status": "processed",
        "amount_minor": 10_555,
        "currency": "TND",
        "rereads": 0,
        "reread_at": None,
    }
