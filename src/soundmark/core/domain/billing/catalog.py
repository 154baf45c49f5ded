"""The catalogue: what is for sale, and through which payment provider."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from soundmark.core.domain.codes.quota import STARTER_PLAN_ID

ProviderName: TypeAlias = Literal["card", "local"]
Product: TypeAlias = Literal["codes", "audience"]
PriceInterval: TypeAlias = Literal["month", "year"]

CONTRACT_PLAN_ID: Final = "plan_audience_contract"  # API v1, "Billing": 5,000 events a month, without an offer.
SEEDED_PLAN_IDS: Final = frozenset({STARTER_PLAN_ID, CONTRACT_PLAN_ID})  # They are always active.


@dataclass(frozen=True, slots=True)
class PaymentProvider:
    """A payment provider, and whether its offers are for sale."""

    name: ProviderName
    enabled: bool
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. It has the quota of its product, and not the other."""

    id: str
    name: str
    product: Product
    monthly_code_quota: int | None
    monthly_event_quota: int | None
    active: bool
    updated_at: datetime

    @property
    def monthly_quota(self) -> int:
        """The Codes or events that the plan allows in a calendar month."""
        quota = self.monthly_code_quota if self.product == "codes" else self.monthly_event_quota
        assert quota is not None, "a plan has the quota of its product"
        return quota


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan for sale through a provider.

    For the local provider, the operator sets country, currency, amount and months. For the card provider, the price
    reference is the operator's; currency, amount and interval are what the provider says of that price, for display
    only, and None until it has been asked.
    """

    id: str
    plan_id: str
    provider: ProviderName
    active: bool
    price_reference: str | None
    country: str | None
    currency: str | None
    amount_minor: int | None
    price_interval: PriceInterval | None
    entitlement_months: int | None
    price_read_at: datetime | None
    updated_at: datetime
