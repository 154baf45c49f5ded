"""Subscriptions: what an organisation has bought, or was granted by contract."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from soundmark.core.domain.billing.catalog import Product
from soundmark.wire.shape import EntitledMode

SubscriptionProvider: TypeAlias = Literal["card", "local", "contract"]
SubscriptionStatus: TypeAlias = Literal["trialing", "active", "past_due", "cancelled", "expired"]
# What a card provider says of a subscription, a local provider's payment, an operator's contract, and the clock.
SubscriptionEvent: TypeAlias = Literal[
    "card_trialing",
    "card_active",
    "card_past_due",
    "card_cancelled",
    "card_expired",
    "card_other",
    "payment_verified",
    "contract_activated",
    "contract_cancelled",
    "period_over",
]

SUBSCRIPTION_PREFIX: Final = "bsu_"
CARD_GRACE: Final = timedelta(days=3)  # The event of a renewal may be late: contract, section 7.
LIVE: Final[frozenset[SubscriptionStatus]] = frozenset({"trialing", "active", "past_due"})

# The card provider's words. Any other is `card_other`.
CARD_STATUS_EVENTS: Final[Mapping[str, SubscriptionEvent]] = {
    "trialing": "card_trialing",
    "active": "card_active",
    "past_due": "card_past_due",
    "unpaid": "card_past_due",
    "canceled": "card_cancelled",
    "incomplete_expired": "card_expired",
}

_NEW: Final = (None,)
_OVER: Final[tuple[SubscriptionStatus, ...]] = ("cancelled", "expired")

# From each status, None for a subscription that is not there, to the next. What is missing changes nothing.
# Source: API v1, "Subscription entitlement"; contract, section 7.
TRANSITIONS: Final[Mapping[SubscriptionEvent, Mapping[SubscriptionStatus | None, SubscriptionStatus]]] = {
    "card_trialing": dict.fromkeys((*_NEW, *LIVE, *_OVER), "trialing"),
    "card_active": dict.fromkeys((*_NEW, *LIVE, *_OVER), "active"),
    "card_past_due": dict.fromkeys((*_NEW, *LIVE, *_OVER), "past_due"),
    "card_cancelled": dict.fromkeys((*_NEW, *LIVE, *_OVER), "cancelled"),
    "card_expired": dict.fromkeys((*LIVE, *_OVER), "expired"),  # A new one has expired before it was ever paid.
    "card_other": {},
    "payment_verified": {None: "active", "active": "active"},
    "contract_activated": dict.fromkeys((*_NEW, *LIVE, *_OVER), "active"),
    "contract_cancelled": dict.fromkeys((*LIVE, *_OVER), "cancelled"),
    "period_over": dict.fromkeys(LIVE, "expired"),
}


def find_next_status(
    status: SubscriptionStatus | None, event: SubscriptionEvent, *, is_closing: bool
) -> SubscriptionStatus | None:
    """Return the status after an event, None if the event changes nothing.

    `status` None is a subscription that is not there. In an organisation that is being deleted, nothing is granted and
    nothing begins; what is there may end.
    """
    following = TRANSITIONS[event].get(status)
    if is_closing and (status is None or following in LIVE):
        return None
    return following


def find_entitled_until(
    provider: SubscriptionProvider, paid_through: datetime | None, *, is_price_known: bool
) -> datetime | None:
    """Return when a live subscription ceases to entitle; None for one that has no end, or of which nothing was paid.

    Source: contract, section 7, what entitles.
    """
    is_renewal_awaited = provider == "card" and is_price_known
    return paid_through + CARD_GRACE if paid_through is not None and is_renewal_awaited else paid_through


def is_paid_at(
    provider: SubscriptionProvider, paid_through: datetime | None, now: datetime, *, is_price_known: bool
) -> bool:
    """Return whether what was paid of a subscription, or agreed upon, has not ended at `now`."""
    ends_at = find_entitled_until(provider, paid_through, is_price_known=is_price_known)
    # A contract may have no end. Of anything else that has none, nothing was paid.
    return provider == "contract" if ends_at is None else now < ends_at


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as stored.

    `audience_mode` is the mode of integrations that it enables, None for Codes. `monthly_quota` is an operator's quota
    in place of the plan's. `provider_reference` is the card provider's. `last_event_at` is the time of the newest card
    event that it went by.

    `current_period_end` is for display. `paid_through` is what entitles; if it is None, a contract has no end, and of
    a card subscription nothing was paid. The provider made the newest paid invoice at `paid_invoice_at`, for a period
    until `paid_period_end`; both are None for other providers. `is_price_known` is false while a card subscription has
    a price that we do not sell.
    """

    organization_id: str
    id: str
    plan_id: str
    product: Product
    audience_mode: EntitledMode | None
    provider: SubscriptionProvider
    status: SubscriptionStatus
    current_period_end: datetime | None
    paid_through: datetime | None
    cancel_at_period_end: bool
    monthly_quota: int | None
    checkout_id: str | None
    provider_reference: str | None = field(repr=False)
    contract_reference: str | None
    last_event_at: datetime | None
    created_at: datetime
    updated_at: datetime
    paid_period_end: datetime | None = None
    paid_invoice_at: datetime | None = None
    is_price_known: bool = True

    def entitles(self, now: datetime) -> bool:
        """Return whether the subscription entitles its organisation at `now`."""
        is_paid = is_paid_at(self.provider, self.paid_through, now, is_price_known=self.is_price_known)
        return self.status in LIVE and is_paid

    def is_over(self, now: datetime) -> bool:
        """Return whether this is a contract or prepaid, and is to expire because its period has ended."""
        has_ended = self.paid_through is not None and self.paid_through <= now
        return self.provider != "card" and self.status in LIVE and has_ended

    def has_same_terms(self, other: "Subscription") -> bool:
        """Return whether both differ at most in when they changed, and in the events and invoices that they went by."""
        return self == replace(
            other,
            last_event_at=self.last_event_at,
            paid_period_end=self.paid_period_end,
            paid_invoice_at=self.paid_invoice_at,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True, slots=True)
class LiveQuota:
    """The quota of a subscription whose status is live. Whether it entitles is a question of the time."""

    provider: SubscriptionProvider
    paid_through: datetime | None
    monthly_quota: int
    is_price_known: bool = True

    @property
    def ends_at(self) -> datetime | None:
        """When it ceases to entitle, if it does now; None if it has no end."""
        return find_entitled_until(self.provider, self.paid_through, is_price_known=self.is_price_known)

    def entitles(self, now: datetime) -> bool:
        """Return whether the subscription entitles its organisation at `now`."""
        return is_paid_at(self.provider, self.paid_through, now, is_price_known=self.is_price_known)


@dataclass(frozen=True, slots=True)
class ListedSubscription:
    """A subscription as its organisation sees it."""

    id: str
    plan_id: str
    plan_name: str
    product: Product
    provider: SubscriptionProvider
    status: SubscriptionStatus
    current_period_end: datetime | None
    paid_through: datetime | None
    cancel_at_period_end: bool
    created_at: datetime


def list_quotas(live: Sequence[LiveQuota], now: datetime) -> list[int]:
    """Return the quotas of the subscriptions that entitle at `now`."""
    return [each.monthly_quota for each in live if each.entitles(now)]


def find_best(live: Sequence[LiveQuota], now: datetime) -> LiveQuota | None:
    """Return the subscription with the highest quota of those that entitle at `now`; of equal ones, the last to end."""
    entitling = [each for each in live if each.entitles(now)]
    return max(entitling, key=_quota_then_end, default=None)


def _quota_then_end(quota: LiveQuota) -> tuple[int, bool, float]:
    ends_at = quota.ends_at
    return quota.monthly_quota, ends_at is None, 0.0 if ends_at is None else ends_at.timestamp()
