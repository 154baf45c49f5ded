"""Checkouts: purchases on a payment provider's page."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from soundmark.core.domain.billing.catalog import Product, ProviderName

CheckoutStatus: TypeAlias = Literal["pending", "completed", "failed", "expired"]

CHECKOUT_PREFIX: Final = "bco_"
LIFE: Final = timedelta(hours=24)  # API v1, "Limits".
PENDING_MAX: Final = 10  # Of one organisation: contract, section 7.


@dataclass(frozen=True, slots=True)
class Checkout:
    """A purchase. Offer, plan, and price or amount are those of the time at which it was made.

    `provider_reference` is the card provider's session or the local provider's payment, None until the provider has
    made one. `subscription_reference` is the card subscription that it led to. `read_applied` is the number of the
    latest read of the provider's objects that was applied; see `store.billing.checkouts.update_reads_begun`.
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
