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


def entitled_until(provider: SubscriptionProvider, current_period_end: datetime | None) -> datetime | None:
    """Return when a live subscription ceases to entitle; None for one without an end."""
    if current_period_end is None or provider != "card":
        return current_period_end
    return current_period_end + CARD_GRACE


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as stored.

    `audience_mode` is the mode of integrations that it enables, None for Codes. `monthly_quota` is an operator's quota
    in place of the plan's. `provider_reference` is the card provider's. `last_event_at` is the time of the newest card
    event that it went by.
    """

    organization_id: str
    id: str
    plan_id: str
    product: Product
    audience_mode: EntitledMode | None
    provider: SubscriptionProvider
    status: SubscriptionStatus
    current_period_end: datetime | None
    cancel_at_period_end: bool
    monthly_quota: int | None
    checkout_id: str | None
    provider_reference: str | None = field(repr=False)
    contract_reference: str | None
    last_event_at: datetime | None
    created_at: datetime
    updated_at: datetime

    def entitles(self, now: datetime) -> bool:
        """Return whether the subscription entitles its organisation at `now`."""
        ends_at = entitled_until(self.provider, self.current_period_end)
        return self.status in LIVE and (ends_at is None or now < ends_at)

    def is_over(self, now: datetime) -> bool:
        """Return whether this is a contract or prepaid, and is to expire because its period has ended."""
        has_ended = self.current_period_end is not None and self.current_period_end <= now
        return self.provider != "card" and self.status in LIVE and has_ended

    def has_same_terms(self, other: "Subscription") -> bool:
        """Return whether both differ at most in when they changed, and in the events that they went by."""
        return self == replace(other, last_event_at=self.last_event_at, updated_at=self.updated_at)


@dataclass(frozen=True, slots=True)
class LiveQuota:
    """The quota of a subscription whose status is live. Whether it entitles is a question of the time."""

    provider: SubscriptionProvider
    current_period_end: datetime | None
    monthly_quota: int

    @property
    def ends_at(self) -> datetime | None:
        """When it ceases to entitle; None if it has no end."""
        return entitled_until(self.provider, self.current_period_end)

    def entitles(self, now: datetime) -> bool:
        """Return whether the subscription entitles its organisation at `now`."""
        return self.ends_at is None or now < self.ends_at


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
