"""Reading the card provider's objects: those of API version 2025-03-31.basil, and those of the shape before it.

Members that are not named here are not read. A member of another type than documented makes an object invalid.

Source: the provider's changelog of 2025-03-31.basil.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from soundmark.core.domain.billing.card import CardInvoice, CardInvoiceLine, CardPrice, CardSession, CardSubscription

_METADATA_MAX: Final = 50  # The provider's own limits: 50 keys of 40 characters, with values of 500.

Reference: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9_-]+\Z")]
Metadata: TypeAlias = Annotated[
    dict[Annotated[str, msgspec.Meta(max_length=40)], Annotated[str, msgspec.Meta(max_length=500)]],
    msgspec.Meta(max_length=_METADATA_MAX),
]
_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Unix: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799)]  # Until the year 9999.
_Currency: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z]{3}\Z")]

S = TypeVar("S", bound=msgspec.Struct)


class ShapeInvalid(Exception):
    """The object is not of the documented shape. The message never repeats any of it."""


class _Expanded(msgspec.Struct):
    id: Reference


_Link: TypeAlias = Reference | _Expanded | None  # A reference, or the whole object if it was expanded.


class _Session(msgspec.Struct):
    object: Literal["checkout.session"]
    id: Reference
    status: _Word | None = None
    payment_status: _Word | None = None
    client_reference_id: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    customer: _Link = None
    subscription: _Link = None
    metadata: Metadata | None = None
    url: str | None = None


class _SubscriptionDetails(msgspec.Struct):
    subscription: _Link = None
    metadata: Metadata | None = None


class _Parent(msgspec.Struct):
    subscription_details: _SubscriptionDetails | None = None


class _Period(msgspec.Struct):
    start: _Unix
    end: _Unix


class _PriceDetails(msgspec.Struct):
    price: _Link = None


class _Pricing(msgspec.Struct):
    price_details: _PriceDetails | None = None


class _LineDetails(msgspec.Struct):
    subscription: _Link = None


class _LineParent(msgspec.Struct):
    invoice_item_details: _LineDetails | None = None  # A proration, among others.
    subscription_item_details: _LineDetails | None = None


class _Line(msgspec.Struct):
    amount: Annotated[int, msgspec.Meta(ge=-(2**53) + 1, le=2**53 - 1)] = 0
    period: _Period | None = None
    subscription: _Link = None
    parent: _LineParent | None = None
    pricing: _Pricing | None = None
    # Before basil:
    price: _Link = None


class _Lines(msgspec.Struct):
    data: list[_Line] = []
    has_more: bool = False


class _Invoice(msgspec.Struct):
    object: Literal["invoice"]
    id: Reference
    amount_paid: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
    currency: _Currency
    created: _Unix | None = None
    status: _Word | None = None
    customer: _Link = None
    parent: _Parent | None = None
    lines: _Lines | None = None
    # Before basil:
    subscription: _Link = None
    subscription_details: _SubscriptionDetails | None = None


class _ItemPrice(msgspec.Struct):
    id: Reference


class _PriceList(msgspec.Struct):
    object: Literal["list"]
    data: list[_ItemPrice]


class _Item(msgspec.Struct):
    price: _ItemPrice
    current_period_start: _Unix | None = None
    current_period_end: _Unix | None = None


class _Items(msgspec.Struct):
    data: list[_Item]


class _Subscription(msgspec.Struct):
    object: Literal["subscription"]
    id: Reference
    status: _Word
    items: _Items
    cancel_at_period_end: bool
    customer: _Link = None
    metadata: Metadata | None = None
    latest_invoice: Reference | dict[str, Any] | None = None
    trial_end: _Unix | None = None
    # Before basil:
    current_period_start: _Unix | None = None
    current_period_end: _Unix | None = None


class _Recurring(msgspec.Struct):
    interval: _Word
    interval_count: int = 1

    @property
    def is_single(self) -> bool:
        return self.interval_count == 1 and self.interval in {"month", "year"}


class _Price(msgspec.Struct):
    object: Literal["price"]
    id: Reference
    active: bool
    currency: _Currency
    unit_amount: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] | None = None
    recurring: _Recurring | None = None


class _Portal(msgspec.Struct):
    object: Literal["billing_portal.session"]
    url: str


class _EventId(msgspec.Struct):
    id: Reference


class EventPage(msgspec.Struct):
    """A page of a list of events, newest first."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    has_more: bool

    @property
    def last_id(self) -> str:
        """The id of the last event.

        Raises: ShapeInvalid.
        """
        return _read(_EventId, self.data[-1]).id


def read_session(found: Mapping[str, Any]) -> CardSession:
    """Read a Checkout Session.

    Raises: ShapeInvalid.
    """
    session = _read(_Session, found)
    return CardSession(
        reference=session.id,
        status=session.status,
        payment_status=session.payment_status,
        client_reference_id=session.client_reference_id,
        customer=_reference(session.customer),
        subscription=_reference(session.subscription),
        metadata=session.metadata or {},
        url=session.url,
    )


def read_subscription(found: Mapping[str, Any]) -> CardSubscription:
    """Read a subscription, and its latest invoice if that is expanded.

    Raises: ShapeInvalid.
    """
    subscription = _read(_Subscription, found)
    items = subscription.items.data
    ends = [item.current_period_end for item in items if item.current_period_end is not None]
    starts = [item.current_period_start for item in items if item.current_period_start is not None]
    invoice = subscription.latest_invoice
    return CardSubscription(
        reference=subscription.id,
        status=subscription.status,
        customer=_reference(subscription.customer),
        prices=tuple(item.price.id for item in subscription.items.data),
        current_period_start=_time(min(starts, default=subscription.current_period_start)),
        current_period_end=_time(max(ends, default=subscription.current_period_end)),
        cancel_at_period_end=subscription.cancel_at_period_end,
        metadata=subscription.metadata or {},
        latest_invoice=read_invoice(invoice) if isinstance(invoice, Mapping) else None,
        trial_end=_time(subscription.trial_end),
    )


def read_invoice(found: Mapping[str, Any]) -> CardInvoice:
    """Read an invoice.

    Raises: ShapeInvalid.
    """
    invoice = _read(_Invoice, found)
    details = invoice.parent.subscription_details if invoice.parent is not None else None
    details = details or invoice.subscription_details or _SubscriptionDetails()
    lines = invoice.lines or _Lines()
    return CardInvoice(
        reference=invoice.id,
        status=invoice.status,
        subscription=_reference(details.subscription) or _reference(invoice.subscription),
        customer=_reference(invoice.customer),
        amount_paid_minor=invoice.amount_paid,
        currency=invoice.currency.upper(),
        metadata=details.metadata or {},
        created_at=_time(invoice.created),
        lines=_read_lines(lines),
        has_more_lines=lines.has_more,
    )


def read_lines(found: Mapping[str, Any]) -> tuple[CardInvoiceLine, ...]:
    """Read a page of the lines of an invoice.

    Raises: ShapeInvalid.
    """
    return _read_lines(_read(_Lines, found))


def _read_lines(lines: _Lines) -> tuple[CardInvoiceLine, ...]:
    return tuple(_read_line(line, line.period) for line in lines.data if line.period is not None)


def _read_line(line: _Line, period: _Period) -> CardInvoiceLine:
    parent = line.parent or _LineParent()
    details = parent.subscription_item_details or parent.invoice_item_details or _LineDetails()
    priced = (line.pricing or _Pricing()).price_details or _PriceDetails()
    return CardInvoiceLine(
        subscription=_reference(details.subscription) or _reference(line.subscription),
        price=_reference(priced.price) or _reference(line.price),
        is_credit=line.amount < 0,
        period_start=datetime.fromtimestamp(period.start, UTC),
        period_end=datetime.fromtimestamp(period.end, UTC),
    )


def read_price(found: Mapping[str, Any], reference: str) -> CardPrice:
    """Read a price, which must have this reference.

    Raises: ShapeInvalid.
    """
    price = _read(_Price, found)
    if price.id != reference:
        raise ShapeInvalid
    recurring = price.recurring
    return CardPrice(
        is_active=price.active,
        is_recurring=recurring is not None,
        currency=price.currency.upper(),
        amount_minor=price.unit_amount,
        interval=recurring.interval if recurring is not None and recurring.is_single else None,
    )


def read_prices(found: Mapping[str, Any]) -> None:
    """Require a list of prices, without looking at the prices.

    Raises: ShapeInvalid.
    """
    _read(_PriceList, found)


def read_portal_url(found: Mapping[str, Any]) -> str:
    """Return the URL of a session of the customer portal.

    Raises: ShapeInvalid.
    """
    return _read(_Portal, found).url


def read_events(found: Mapping[str, Any]) -> EventPage:
    """Read a page of events, without looking at the events.

    Raises: ShapeInvalid.
    """
    page = _read(EventPage, found)
    if page.data:
        _read(_EventId, page.data[-1])
    return page


def _read(shape: type[S], found: Mapping[str, Any]) -> S:
    try:
        return msgspec.convert(found, type=shape)
    except (msgspec.ValidationError, RecursionError):
        raise ShapeInvalid("the object is not of the documented shape") from None


def _time(unix_s: int | None) -> datetime | None:
    return None if unix_s is None else datetime.fromtimestamp(unix_s, UTC)


def _reference(link: _Link) -> str | None:
    return link.id if isinstance(link, _Expanded) else link
