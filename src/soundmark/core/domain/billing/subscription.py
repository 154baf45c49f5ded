"""Subscriptions: what an organisation has bought, or was granted by contract."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypeAlias

from soundmark.core.domain.billing.catalog import Product
from soundmark.wire.shape import EntitledMode

SubscriptionProvider: TypeAlias = Literal["card", "local", "contract"]
SubscriptionStatus: TypeAlias = Literal["trialing", "active", "past_due", "cancelled", "expired"]

SUBSCRIPTION_PREFIX: Final = "bsu_"


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
