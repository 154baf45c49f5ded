"""What Core reads from the card provider's objects, whether from a webhook or from the provider's API.

Source: docs of the card provider's API version 2025-03-31.basil; objects of the older shape are read too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

# The metadata keys of sessions and subscriptions. Contract, section 7.
CHECKOUT_KEY: Final = "svc_checkout_id"
ORGANIZATION_KEY: Final = "svc_organization_id"
OFFER_KEY: Final = "svc_offer_id"


@dataclass(frozen=True, slots=True)
class CardInvoiceLine:
    """A line of an invoice, and the period that it is about.

    `subscription` is the reference of the subscription that it bills, if any; `price` is that of its price, None if the
    provider left it out. A credit gives back what was paid before, such as the rest of a period after a change of plan.
    """

    subscription: str | None = field(repr=False)
    price: str | None = field(repr=False)
    is_credit: bool
    period_start: datetime
    period_end: datetime


@dataclass(frozen=True, slots=True)
class CardInvoice:
    """An invoice. `subscription` is the reference of the subscription that it bills, if any.

    `metadata` is that of the subscription when the invoice was made. `amount_paid_minor` is in the currency's minor
    unit, and `currency` in upper case. The lines are those that have a period, in no order; `has_more_lines` says that
    the provider left some out.
    """

    reference: str = field(repr=False)
    status: str | None
    subscription: str | None = field(repr=False)
    customer: str | None = field(repr=False)
    amount_paid_minor: int
    currency: str
    metadata: Mapping[str, str]
    created_at: datetime | None = None
    lines: tuple[CardInvoiceLine, ...] = ()
    has_more_lines: bool = False

    @property
    def last_line(self) -> CardInvoiceLine | None:
        """The charge for its subscription whose period ends last; of several, the latest to begin; else a credit."""
        return max(
            (line for line in self.lines if line.subscription == self.subscription),
            key=lambda line: (not line.is_credit, line.period_end, line.period_start),
            default=None,
        )


@dataclass(frozen=True, slots=True)
class CardSubscription:
    """A subscription as the provider has it; `status` is the provider's own word.

    `prices` are the references of its items' prices. `current_period_end` is the latest of its items, and
    `current_period_start` the earliest: the provider moves both when it tries to renew, paid or not. `trial_end` stays
    when the trial is over. `latest_invoice` is None if the provider did not include it.
    """

    reference: str = field(repr=False)
    status: str
    customer: str | None = field(repr=False)
    prices: tuple[str, ...] = field(repr=False)
    current_period_end: datetime | None
    cancel_at_period_end: bool
    metadata: Mapping[str, str]
    latest_invoice: CardInvoice | None
    current_period_start: datetime | None = None
    trial_end: datetime | None = None


@dataclass(frozen=True, slots=True)
class CardSession:
    """A Checkout Session. `subscription` is None until it is completed, `url` None once it is no longer open."""

    reference: str = field(repr=False)
    status: str | None
    payment_status: str | None
    client_reference_id: str | None
    customer: str | None = field(repr=False)
    subscription: str | None = field(repr=False)
    metadata: Mapping[str, str]
    url: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class CardPrice:
    """A price. It can be sold while it is active, as a subscription if it recurs.

    `amount_minor` is None if the price has tiers, and `interval` is None if it is not a single month or year.
    """

    is_active: bool
    is_recurring: bool
    currency: str
    amount_minor: int | None
    interval: str | None
