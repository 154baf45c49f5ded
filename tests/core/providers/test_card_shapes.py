"""Reading the card provider's objects: API version 2025-03-31.basil, the shape before it, and anything else."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from soundmark.core.domain.billing.card import CardInvoiceLine, CardPrice
from soundmark.core.providers.stripe.shapes import (
    ShapeInvalid,
    read_invoice,
    read_price,
    read_session,
    read_subscription,
)

METADATA = {"svc_checkout_id": "bco_1", "svc_organization_id": "org_1", "svc_offer_id": "offer_1"}
SESSION: dict[str, Any] = {
    "id": "cs_test_1",
    "object": "checkout.session",
    "status": "complete",
    "payment_status": "paid",
    "client_reference_id": "bco_1",
    "customer": "cus_1",
    "subscription": "sub_1",
    "metadata": METADATA,
    "url": None,
    "mode": "subscription",
    "livemode": False,
}
INVOICE: dict[str, Any] = {
    "id": "in_1",
    "object": "invoice",
    "status": "paid",
    "amount_paid": 4900,
    "currency": "eur",
    "customer": "cus_1",
    "billing_reason": "subscription_create",
    "parent": {
        "type": "subscription_details",
        "quote_details": None,
        "subscription_details": {"subscription": "sub_1", "metadata": METADATA},
    },
}
OLDER_INVOICE: dict[str, Any] = {
    **{name: value for name, value in INVOICE.items() if name != "parent"},
    "paid": True,
    "subscription": "sub_1",
    "subscription_details": {"metadata": METADATA},
}
SUBSCRIPTION: dict[str, Any] = {
    "id": "sub_1",
    "object": "subscription",
    "status": "active",
    "customer": "cus_1",
    "cancel_at_period_end": False,
    "canceled_at": None,
    "metadata": METADATA,
    "items": {
        "object": "list",
        "data": [
            {"id": "si_1", "price": {"id": "price_1", "object": "price"}, "current_period_end": 1_797_796_968},
            {"id": "si_2", "price": {"id": "price_2", "object": "price"}, "current_period_end": 1_797_796_969},
        ],
    },
    "latest_invoice": "in_1",
}
PRICE: dict[str, Any] = {
    "id": "price_1",
    "object": "price",
    "active": True,
    "currency": "eur",
    "unit_amount": 4900,
    "recurring": {"interval": "month", "interval_count": 1},
}
END = datetime.fromtimestamp(1_797_796_969, UTC)
MISSING = object()


def changed(found: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with another value at a dotted path, or with none."""
    copied = copy.deepcopy(dict(found))
    *parents, last = path.split(".")
    place: Any = copied
    for name in parents:
        place = place[int(name)] if name.isdigit() else place[name]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return copied


def test_a_session_is_read() -> None:
    session = read_session(SESSION)

    assert (session.reference, session.status, session.payment_status) == ("cs_test_1", "complete", "paid")
    assert (session.client_reference_id, session.customer, session.subscription) == ("bco_1", "cus_1", "sub_1")
    assert (session.metadata, session.url) == (METADATA, None)


def test_a_session_that_is_open_has_no_customer_and_no_subscription() -> None:
    found = {**SESSION, "customer": None, "subscription": None, "metadata": None, "url": "https://example.com/c#f"}

    session = read_session(found)

    assert (session.customer, session.subscription, session.metadata) == (None, None, {})
    assert session.url == "https://example.com/c#f"


def test_expanded_objects_are_read_like_references() -> None:
    found = {**SESSION, "customer": {"id": "cus_1", "email": "x@example.org"}, "subscription": SUBSCRIPTION}

    assert read_session(found) == read_session(SESSION)


def test_the_period_of_a_subscription_is_the_latest_of_its_items() -> None:
    subscription = read_subscription(SUBSCRIPTION)

    assert (subscription.reference, subscription.status, subscription.customer) == ("sub_1", "active", "cus_1")
    assert (subscription.prices, subscription.current_period_end) == (("price_1", "price_2"), END)
    assert (subscription.cancel_at_period_end, subscription.metadata) == (False, METADATA)
    assert subscription.latest_invoice is None


def test_the_period_of_an_older_subscription_is_its_own() -> None:
    items = [{"id": "si_1", "price": {"id": "price_1"}, "plan": {"id": "price_1"}}]
    older = {**SUBSCRIPTION, "items": {"data": items}, "current_period_end": 1_797_796_969}

    subscription = read_subscription(older)

    assert (subscription.prices, subscription.current_period_end) == (("price_1",), END)


def test_a_subscription_without_a_period_has_none() -> None:
    assert read_subscription({**SUBSCRIPTION, "items": {"data": []}}).current_period_end is None


def test_a_state_that_is_unknown_is_kept_as_it_is() -> None:
    assert read_subscription({**SUBSCRIPTION, "status": "invented_later"}).status == "invented_later"


@pytest.mark.parametrize("invoice", [INVOICE, OLDER_INVOICE], ids=["basil", "older"])
def test_an_invoice_is_read_in_either_shape(invoice: dict[str, Any]) -> None:
    found = read_invoice(invoice)

    assert (found.reference, found.status, found.subscription, found.customer) == ("in_1", "paid", "sub_1", "cus_1")
    assert (found.amount_paid_minor, found.currency, found.metadata) == (4900, "EUR", METADATA)
    assert read_subscription({**SUBSCRIPTION, "latest_invoice": invoice}).latest_invoice == found


def make_line(**changes: Any) -> dict[str, Any]:
    """Return a line that charges for a period, in the shape of basil."""
    return {
        "id": "il_1",
        "object": "line_item",
        "amount": 4900,
        "subscription": None,
        "parent": {
            "type": "subscription_item_details",
            "invoice_item_details": None,
            "subscription_item_details": {"subscription": "sub_1", "proration": False},
        },
        "period": {"start": 1_795_204_969, "end": 1_797_796_969},
        "pricing": {"type": "price_details", "price_details": {"price": "price_1", "product": "prod_1"}},
        **changes,
    }


CHARGE = CardInvoiceLine("sub_1", "price_1", False, datetime.fromtimestamp(1_795_204_969, UTC), END)
PRORATION = {"type": "invoice_item_details", "invoice_item_details": {"subscription": "sub_1"}}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (make_line(), CHARGE),
        (make_line(parent=PRORATION, amount=-4900), replace(CHARGE, is_credit=True)),
        (make_line(amount=0), CHARGE),
        (make_line(parent=None, subscription="sub_1"), CHARGE),
        (make_line(parent=None, subscription={"id": "sub_1"}, pricing=None, price={"id": "price_1"}), CHARGE),
        (make_line(parent=None), replace(CHARGE, subscription=None)),
        (make_line(pricing=None), replace(CHARGE, price=None)),
    ],
    ids=["basil", "proration", "nothing", "own", "older", "nobodys", "without a price"],
)
def test_a_line_is_read_in_every_shape(line: dict[str, Any], expected: CardInvoiceLine) -> None:
    invoice = read_invoice({**INVOICE, "created": 1_797_796_969, "lines": {"object": "list", "data": [line]}})
    assert (invoice.lines, invoice.created_at) == ((expected,), END)


def test_a_line_without_a_period_is_left_out_and_an_invoice_may_have_no_lines() -> None:
    assert read_invoice({**INVOICE, "lines": {"data": [make_line(period=None)]}}).lines == ()
    assert (read_invoice(INVOICE).lines, read_invoice(INVOICE).created_at, read_invoice(INVOICE).last_line) == (
        (), None, None,
    )  # fmt: skip


def test_the_last_line_is_the_charge_for_the_latest_period_of_the_invoices_subscription() -> None:
    """A draft invoice names its period."""
    later = {"start": 1_797_796_970, "end": 1_797_796_980}
    other = make_line(parent=None, subscription="sub_2", period=later)
    credit = make_line(parent=PRORATION, amount=-1, period={"start": 1_797_000_000, "end": 1_797_796_969})
    rest_of_a_year = make_line(parent=PRORATION, amount=-1, period=later)
    for data in ([other, credit, make_line()], [make_line(), credit, other], [rest_of_a_year, make_line()]):
        assert read_invoice({**INVOICE, "lines": {"data": data}}).last_line == CHARGE


def test_the_end_of_a_trial_is_read() -> None:
    assert read_subscription({**SUBSCRIPTION, "trial_end": 1_797_796_969}).trial_end == END
    assert read_subscription(SUBSCRIPTION).trial_end is None


def test_an_invoice_with_an_expanded_subscription_is_read() -> None:
    expanded = changed(INVOICE, "parent.subscription_details.subscription", SUBSCRIPTION)

    assert read_invoice(expanded) == read_invoice(INVOICE)


def test_an_invoice_of_no_subscription_has_none() -> None:
    found = read_invoice({**INVOICE, "parent": {"type": "quote_details", "subscription_details": None}})

    assert (found.subscription, found.metadata) == (None, {})


@pytest.mark.parametrize(
    ("recurring", "interval"),
    [
        ({"interval": "month", "interval_count": 1}, "month"),
        ({"interval": "year"}, "year"),
        ({"interval": "month", "interval_count": 3}, None),
        ({"interval": "week", "interval_count": 1}, None),
        (None, None),
    ],
    ids=str,
)
def test_a_price_is_shown_by_the_month_or_the_year(recurring: Any, interval: str | None) -> None:
    price = read_price({**PRICE, "recurring": recurring}, "price_1")
    assert price == CardPrice(True, recurring is not None, "EUR", 4900, interval)


def test_a_price_with_tiers_has_no_amount() -> None:
    assert read_price({**PRICE, "unit_amount": None}, "price_1").amount_minor is None


READERS: Mapping[str, tuple[Callable[[Mapping[str, Any]], object], dict[str, Any]]] = {
    "session": (read_session, SESSION),
    "subscription": (read_subscription, SUBSCRIPTION),
    "invoice": (read_invoice, INVOICE),
    "price": (lambda found: read_price(found, "price_1"), PRICE),
}


REFUSED: list[tuple[str, str, Any]] = [
    *((kind, "object", value) for kind in READERS for value in ("customer", None, 7, [])),
    *((kind, "id", value) for kind in READERS for value in ("", None, 7, "a/b", "sub_1\n", "x" * 256)),
    *((kind, "metadata", value) for kind in ("session", "subscription") for value in ("x", [1], {"a": 1})),
    *(("session", "metadata", value) for value in ({str(number): "" for number in range(51)}, {"key": "x" * 501})),
    *(("session", "customer", 7), ("session", "subscription", {"id": None}), ("session", "url", 7)),
    *(("subscription", "status", value) for value in (None, 7, MISSING)),
    *(("subscription", "cancel_at_period_end", value) for value in ("false", None, MISSING)),
    *(("subscription", "items", value) for value in (None, [], MISSING)),
    *(("subscription", "items.data", {}), ("subscription", "items.data.0.price", "price_1")),
    *(("subscription", "items.data.0.current_period_end", value) for value in ("1797796968", -1, 10**15, True)),
    *(("subscription", "latest_invoice", value) for value in (7, {"id": "in_1"})),
    *(("invoice", "amount_paid", value) for value in ("4900", -1, True, 49.5, MISSING)),
    *(("invoice", "currency", value) for value in ("euro", None, MISSING)),
    *(("invoice", "parent", []), ("price", "unit_amount", "4900"), ("price", "recurring", "month")),
    ("price", "currency", MISSING),
]


def test_an_object_of_another_shape_is_refused_without_repeating_it() -> None:
    for kind, path, value in REFUSED:
        read, found = READERS[kind]
        read(found)
        with pytest.raises(ShapeInvalid) as refused:
            read(changed(found, path, value))
        assert str(refused.value) == "the object is not of the documented shape", (kind, path, value)
        assert refused.value.__cause__ is None


def test_no_record_shows_a_reference() -> None:
    shown = repr([read_session(SESSION), read_subscription({**SUBSCRIPTION, "latest_invoice": INVOICE})])

    assert not any(reference in shown for reference in ("cs_test_1", "cus_1", "sub_1", "in_1", "price_1"))
