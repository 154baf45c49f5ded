"""Offers, checkouts and subscriptions."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from soundmark_sdk.client.records.record import Record


@dataclass(frozen=True, slots=True)
class OfferedPlan(Record):
    """The plan that an offer sells; `monthly_quota` counts Codes or events, by its product."""

    id: str
    name: str
    product: Literal["codes", "audience"]
    monthly_quota: int


@dataclass(frozen=True, slots=True)
class Offer(Record):
    """Something for sale.

    The amount is in the currency's minor unit. Currency, amount and interval of a card offer are for display. Its
    amount is None for a price in tiers, and its interval None unless it is one month or one year. A card offer has no
    country, and is for sale everywhere.
    """

    id: str
    plan: OfferedPlan
    provider: Literal["card", "local"]
    country: str | None
    currency: str | None
    amount_minor: int | None
    interval: Literal["month", "year"] | None
    entitlement_months: int | None


@dataclass(frozen=True, slots=True)
class Offers(Record):
    """All offers for sale."""

    data: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class Checkout(Record):
    """A purchase on a payment provider's page."""

    id: str
    status: Literal["pending", "completed", "failed", "expired"]
    offer_id: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PendingCheckouts(Record):
    """All checkouts of an organisation that are pending, oldest first."""

    data: tuple[Checkout, ...]


@dataclass(frozen=True, slots=True)
class StartedCheckout(Checkout):
    """A checkout that was just made, with the address of the page on which a person pays."""

    checkout_url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Portal(Record):
    """The address of the card provider's page on which a person changes or cancels subscriptions. It is short-lived."""

    portal_url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DraftInvoice(Record):
    """The latest draft invoice of a subscription; `invoice_id` is the accounting system's, once it is completed."""

    status: Literal["not_scheduled", "pending", "processing", "completed", "failed"]
    invoice_id: int | None


@dataclass(frozen=True, slots=True)
class Subscription(Record):
    """What an organisation has bought, or was granted by contract.

    `paid_through` is what entitles. If it is None, nothing was paid of a card subscription yet, and a contract has no
    end.
    """

    id: str
    plan_id: str
    plan_name: str
    product: Literal["codes", "audience"]
    provider: Literal["card", "local", "contract"]
    status: Literal["trialing", "active", "past_due", "cancelled", "expired"]
    current_period_end: datetime | None
    paid_through: datetime | None
    cancel_at_period_end: bool
    created_at: datetime
    accounting: DraftInvoice
