"""Checkouts: purchases on a payment provider's page."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from soundmark.core.domain.billing.catalog import Product, ProviderName

CheckoutStatus: TypeAlias = Literal["pending", "completed", "failed", "expired"]

CHECKOUT_PREFIX: Final = "bco_"
LIFE: Final = timedelta(hours=24)  # API v1, "Limits".
PENDING_MAX: Final = 10  # Of one organisation: contract, section 7.
PAGE_WITHIN: Final = timedelta(minutes=15)  # Far longer than any call: a checkout without a page by then has failed.
FIRST_REREAD: Final = timedelta(minutes=2)  # Later than most notifications.
ASK_PAUSE: Final = timedelta(seconds=10)  # Between two questions about a payment that is unpaid: contract, section 7.


@dataclass(frozen=True, slots=True)
class Purchase:
    """What is bought: the facts of an offer for sale that are bound to a checkout."""

    offer_id: str
    plan_id: str
    product: Product
    provider: ProviderName
    price_reference: str | None = field(repr=False)
    amount_minor: int | None
    currency: str | None
    entitlement_months: int | None


@dataclass(frozen=True, slots=True)
class Checkout:
    """A purchase. Offer, plan, and price or amount are those of the time at which it was made.

    `provider_reference` is the card provider's session or the local provider's payment, None until the provider has
    made one. `subscription_reference` is the card subscription that it led to. `read_applied` is the number of the
    latest read of the provider's objects that was applied; see `store.billing.checkouts.update_reads_begun`.
    `unpaid_at` is when the local provider was last asked about a payment that it then called unpaid.
    """

    organization_id: str
    id: str
    offer_id: str
    plan_id: str
    product: Product
    provider: ProviderName
    status: CheckoutStatus
    price_reference: str | None
    amount_minor: int | None
    currency: str | None
    entitlement_months: int | None
    key_digest: bytes | None
    request_digest: bytes | None
    attempts: int
    provider_reference: str | None
    subscription_reference: str | None
    reads_begun: int
    read_applied: int
    rereads: int
    reread_at: datetime | None
    created_at: datetime
    expires_at: datetime
    completed_at: datetime | None
    unpaid_at: datetime | None

    @property
    def has_page(self) -> bool:
        """Whether the provider has made a page."""
        return self.provider_reference is not None

    def status_at(self, now: datetime) -> CheckoutStatus:
        """Return the status; a pending checkout that has passed its life is expired even before a job says so."""
        return "expired" if self.status == "pending" and now >= self.expires_at else self.status

    def is_unpaid_at(self, now: datetime) -> bool:
        """Return whether the local provider said so recently that it is not asked again yet."""
        return self.unpaid_at is not None and now < self.unpaid_at + ASK_PAUSE


@dataclass(frozen=True, slots=True)
class CheckoutPage:
    """The page of a provider on which a checkout is paid, and the provider's reference of it."""

    reference: str = field(repr=False)
    url: str = field(repr=False)


def begin_checkout(
    organization_id: str,
    checkout_id: str,
    purchase: Purchase,
    *,
    key_digest: bytes | None,
    request_digest: bytes | None,
    now: datetime,
) -> Checkout:
    """Return a new, pending checkout, before its provider is called for the first time."""
    return Checkout(
        organization_id=organization_id,
        id=checkout_id,
        offer_id=purchase.offer_id,
        plan_id=purchase.plan_id,
        product=purchase.product,
        provider=purchase.provider,
        status="pending",
        price_reference=purchase.price_reference,
        amount_minor=purchase.amount_minor,
        currency=purchase.currency,
        entitlement_months=purchase.entitlement_months,
        key_digest=key_digest,
        request_digest=request_digest,
        attempts=1,
        provider_reference=None,
        subscription_reference=None,
        reads_begun=0,
        read_applied=0,
        rereads=0,
        reread_at=None,
        created_at=now,
        expires_at=now + LIFE,
        completed_at=None,
        unpaid_at=None,
    )
