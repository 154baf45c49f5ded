"""What an event of the card provider says, and whether what was paid agrees with its checkout."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from soundmark.core.domain.billing.card import CardInvoice, CardSession, CardSubscription
from soundmark.core.domain.billing.card_event import (
    CARD_EVENTS,
    INVOICE_EVENTS,
    SESSION_EVENTS,
    SUBSCRIPTION_EVENTS,
    CardEvent,
    CardFacts,
    find_disagreement,
    gather_facts,
    names_checkout,
)
from soundmark.core.domain.billing.checkout import Purchase, begin_checkout

NOW: Final = datetime(2026, 11, 23, tzinfo=UTC)
METADATA: Final = {
    "svc_checkout_id": "bco_1111111111111111111111",
    "svc_organization_id": "org_1111111111111111111111",
    "svc_offer_id": "offer_1",
}
PAID: Final = CardInvoice("in_1", "paid", "sub_1", "cus_invoice", 10_555, "TND", METADATA)
OPEN: Final = replace(PAID, reference="in_2", status="open")
SUBSCRIPTION: Final = CardSubscription("sub_1", "active", "cus_1", ("price_1",), NOW, False, METADATA, None)
SESSION: Final = CardSession(
    "cs_1", "complete", "paid", METADATA["svc_checkout_id"], "cus_session", "sub_1", METADATA, None
)
CHECKOUT: Final = begin_checkout(
    METADATA["svc_organization_id"],
    METADATA["svc_checkout_id"],
    Purchase("offer_1", "plan_1", "codes", "card", "price_1", None, None, None),
    key_digest=None,
    request_digest=None,
    now=NOW,
)


def make_event(subject: CardSession | CardSubscription | CardInvoice | None, kind: str = "invoice.paid") -> CardEvent:
    return CardEvent("evt_1", kind, NOW, subject)


def test_the_listed_types_are_those_of_the_specification() -> None:
    assert {"checkout.session.completed", "checkout.session.async_payment_succeeded"} == SESSION_EVENTS
    assert {f"customer.subscription.{change}" for change in ("created", "updated", "deleted")} == SUBSCRIPTION_EVENTS
    assert {"invoice.paid", "invoice.payment_failed"} == INVOICE_EVENTS
    assert CARD_EVENTS == SESSION_EVENTS | SUBSCRIPTION_EVENTS | INVOICE_EVENTS


def test_an_event_names_the_subscription_and_the_metadata_of_its_object() -> None:
    for subject in (SESSION, SUBSCRIPTION, PAID):
        event = make_event(subject)
        assert (event.subscription_reference, event.metadata) == ("sub_1", METADATA)
        assert event.session is (subject if subject is SESSION else None)
    nothing = make_event(None)
    assert (nothing.subscription_reference, nothing.metadata, nothing.session) == (None, {}, None)


def test_an_invoice_was_paid_only_if_its_event_and_its_status_say_so() -> None:
    assert make_event(PAID).paid_invoice is PAID
    assert make_event(PAID, "invoice.payment_failed").paid_invoice is None
    assert make_event(OPEN).paid_invoice is None
    assert make_event(SUBSCRIPTION).paid_invoice is None


def test_each_paid_invoice_is_gathered_once_and_an_open_one_never() -> None:
    def invoices_of(event: CardEvent | None, latest: CardInvoice | None) -> tuple[CardInvoice, ...]:
        return gather_facts(event, None, replace(SUBSCRIPTION, latest_invoice=latest)).paid_invoices

    renewal = replace(PAID, reference="in_3")
    assert invoices_of(make_event(PAID), PAID) == (PAID,)
    assert invoices_of(make_event(PAID), renewal) == (PAID, renewal)
    assert invoices_of(make_event(PAID), OPEN) == (PAID,)
    assert invoices_of(make_event(OPEN), OPEN) == invoices_of(None, None) == ()


@pytest.mark.parametrize(
    ("payment_status", "invoices", "latest", "status", "is_paid"),
    [
        ("paid", (), OPEN, "incomplete", True),
        ("no_payment_required", (), OPEN, "incomplete", True),
        ("unpaid", (PAID,), OPEN, "incomplete", True),
        ("unpaid", (), OPEN, "active", False),
        (None, (), OPEN, "active", False),
        (None, (PAID,), OPEN, "incomplete", True),
        # Without the latest invoice, the status of the subscription says it.
        ("unpaid", (), None, "past_due", True),
        ("unpaid", (), None, "incomplete", False),
        ("unpaid", (), None, "incomplete_expired", False),
        (None, (), None, "active", True),
    ],
)
def test_whether_a_purchase_was_paid(
    payment_status: str | None,
    invoices: tuple[CardInvoice, ...],
    latest: CardInvoice | None,
    status: str,
    *,
    is_paid: bool,
) -> None:
    """A payment status of None stands for a purchase without its session."""
    session = None if payment_status is None else replace(SESSION, payment_status=payment_status)
    assert CardFacts(session, replace(SUBSCRIPTION, status=status, latest_invoice=latest), invoices).is_paid is is_paid


def test_the_customer_is_the_subscriptions_or_else_the_sessions() -> None:
    without = replace(SUBSCRIPTION, customer=None)
    assert CardFacts(SESSION, SUBSCRIPTION, ()).customer == "cus_1"
    assert CardFacts(SESSION, without, ()).customer == "cus_session"
    assert CardFacts(None, without, ()).customer is None


def test_metadata_name_a_checkout_only_with_two_ids_that_may_be_ours() -> None:
    assert names_checkout(METADATA) == (METADATA["svc_organization_id"], METADATA["svc_checkout_id"])
    for key in ("svc_organization_id", "svc_checkout_id"):
        assert names_checkout({**METADATA, key: "'; --"}) is None
        assert names_checkout({name: value for name, value in METADATA.items() if name != key}) is None


OTHERS: Final[list[Mapping[str, str]]] = [
    *({**METADATA, key: "something_else"} for key in METADATA),
    *({name: value for name, value in METADATA.items() if name != key} for key in METADATA),
]


def test_other_metadata_than_the_checkouts_disagree() -> None:
    for metadata in OTHERS:
        session, subscription = replace(SESSION, metadata=metadata), replace(SUBSCRIPTION, metadata=metadata)
        assert find_disagreement(CHECKOUT, CardFacts(session, SUBSCRIPTION, ())) == "session_metadata"
        assert find_disagreement(CHECKOUT, CardFacts(SESSION, subscription, ())) == "subscription_metadata"
        assert find_disagreement(CHECKOUT, CardFacts(None, subscription, ())) == "subscription_metadata"


@pytest.mark.parametrize(
    ("session", "prices", "disagreement"),
    [
        (SESSION, ("price_1",), None),
        (None, ("price_1",), None),
        (replace(SESSION, client_reference_id="bco_2"), ("price_1",), "client_reference_id"),
        (replace(SESSION, client_reference_id=None), ("price_1",), "client_reference_id"),
        (SESSION, ("price_2",), "price"),
        (SESSION, ("price_1", "price_2"), "price"),
        (None, (), "price"),
    ],
)
def test_a_purchase_agrees_by_its_reference_and_its_one_price(
    session: CardSession | None, prices: tuple[str, ...], disagreement: Any
) -> None:
    facts = CardFacts(session, replace(SUBSCRIPTION, prices=prices), ())
    assert find_disagreement(CHECKOUT, facts) == disagreement
