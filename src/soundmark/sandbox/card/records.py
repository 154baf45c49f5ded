"""What the card provider remembers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(slots=True)
class Price:
    """A recurring price. Amounts are in the currency's minor unit."""

    id: str
    product_id: str
    name: str
    currency: str
    unit_amount: int
    interval: str  # month or year
    created_at: datetime
    is_active: bool = True


@dataclass(slots=True)
class CardCustomer:
    """A customer, made by a payment or named by a checkout."""

    id: str
    email: str
    created_at: datetime


@dataclass(slots=True)
class CheckoutSession:
    """A hosted page on which a subscription is bought. `status` is open, complete or expired."""

    id: str
    price: Price
    quantity: int
    success_url: str
    cancel_url: str | None
    client_reference_id: str | None
    metadata: Mapping[str, str]
    subscription_metadata: Mapping[str, str]
    customer_id: str | None
    customer_email: str | None
    trial_days: int
    created_at: datetime
    expires_at: datetime
    url: str
    status: str = "open"
    payment_status: str = "unpaid"
    subscription_id: str | None = None
    invoice_id: str | None = None

    @property
    def amount(self) -> int:
        """What is paid at once."""
        return 0 if self.trial_days else self.price.unit_amount * self.quantity


@dataclass(slots=True)
class CardSubscription:
    """A subscription with one item. Periods are counted in months or years from `anchor_at`."""

    id: str
    item_id: str
    customer_id: str
    price: Price
    quantity: int
    status: str
    metadata: Mapping[str, str]
    created_at: datetime
    period_start: datetime
    period_end: datetime
    anchor_at: datetime
    trial_end: datetime | None = None
    cancel_at_period_end: bool = False
    canceled_at: datetime | None = None
    ended_at: datetime | None = None
    latest_invoice_id: str | None = None
    pause_behavior: str | None = None
    pending_lines: "list[CardInvoiceLine]" = field(default_factory=list)  # Prorations for the next invoice.


@dataclass(slots=True)
class CardInvoiceLine:
    """A line of an invoice: a period at a price, or a proration for the rest of one, negative for a credit."""

    id: str
    price: Price
    quantity: int
    amount: int
    period_start: datetime
    period_end: datetime
    proration_item_id: str | None = None


@dataclass(slots=True)
class CardInvoice:
    """An invoice. `status` is draft, open, paid, void or uncollectible."""

    id: str
    number: str
    subscription_id: str
    subscription_metadata: Mapping[str, str]
    customer_id: str
    customer_email: str
    item_id: str
    currency: str
    lines: list[CardInvoiceLine]
    status: str
    billing_reason: str
    created_at: datetime
    attempts_count: int = 1
    paid_at: datetime | None = None

    @property
    def total(self) -> int:
        """The sum of the lines, negative if the customer is credited."""
        return sum(line.amount for line in self.lines)

    @property
    def amount_due(self) -> int:
        """What is to be paid; a credit is left to the customer's balance."""
        return max(self.total, 0)


@dataclass(slots=True)
class PortalSession:
    """A page on which a customer manages subscriptions."""

    id: str
    customer_id: str
    return_url: str | None
    locale: str | None
    created_at: datetime
    url: str


@dataclass(slots=True)
class CardEvent:
    """An event as it was sent; its object is as it was then."""

    id: str
    type: str
    created_at: datetime
    document: dict[str, Any] = field(default_factory=dict)
