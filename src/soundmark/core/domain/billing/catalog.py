"""The catalogue: what is for sale, and through which payment provider."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypeAlias

from soundmark.core.domain.codes.quota import STARTER_PLAN_ID

ProviderName: TypeAlias = Literal["card", "local"]
Product: TypeAlias = Literal["codes", "audience"]
PriceInterval: TypeAlias = Literal["month", "year"]
PriceStatus: TypeAlias = Literal["known", "unknown", "missing"]
ContractStatus: TypeAlias = Literal["active", "cancelled", "expired"]

CONTRACT_PLAN_ID: Final = "plan_audience_contract"  # API v1, "Billing": 5,000 events a month, without an offer.
SEEDED_PLAN_IDS: Final = frozenset({STARTER_PLAN_ID, CONTRACT_PLAN_ID})  # They are always active.


@dataclass(frozen=True, slots=True)
class PaymentProvider:
    """A payment provider, and whether its offers are for sale."""

    name: ProviderName
    enabled: bool
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """What an operator decides about a plan."""

    name: str
    product: Product
    monthly_quota: int
    active: bool

    @property
    def monthly_code_quota(self) -> int | None:
        """The quota of a plan of Codes, None for another plan."""
        return self.monthly_quota if self.product == "codes" else None

    @property
    def monthly_event_quota(self) -> int | None:
        """The quota of a plan of Audience, None for another plan."""
        return self.monthly_quota if self.product == "audience" else None


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
class OfferTerms:
    """What an operator decides about an offer.

    `price_reference` is for the card provider; country, currency, amount and months are for the local provider.
    """

    plan_id: str
    provider: ProviderName
    active: bool
    price_reference: str | None = field(default=None, repr=False)
    country: str | None = None
    currency: str | None = None
    amount_minor: int | None = None
    entitlement_months: int | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan for sale through a provider.

    For the local provider, the operator sets country, currency, amount and months. For the card provider, the price
    reference is the operator's; currency, amount and interval are what the provider says of that price, for display
    only. Its status is `known` if the provider has it, so that it can be sold, `missing` if it cannot, and `unknown`
    until the provider has answered; None for the local provider.
    """

    id: str
    plan_id: str
    provider: ProviderName
    active: bool
    price_reference: str | None = field(repr=False)
    country: str | None
    currency: str | None
    amount_minor: int | None
    price_interval: PriceInterval | None
    entitlement_months: int | None
    price_read_at: datetime | None
    updated_at: datetime
    price_status: PriceStatus | None


@dataclass(frozen=True, slots=True)
class PriceFacts:
    """What is stored of an offer's price, as described at `Offer`. `read_at` is when the provider was last asked."""

    currency: str | None = None
    amount_minor: int | None = None
    interval: PriceInterval | None = None
    status: PriceStatus | None = None
    read_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ListedOffer:
    """An active offer of an active plan of an enabled provider, at a price that it has, as customers see it."""

    id: str
    plan_id: str
    plan_name: str
    product: Product
    monthly_quota: int
    provider: ProviderName
    country: str | None
    currency: str | None
    amount_minor: int | None
    price_interval: PriceInterval | None
    entitlement_months: int | None


@dataclass(frozen=True, slots=True)
class CardPriceSource:
    """A card offer, and the price that the provider is asked about."""

    offer_id: str
    price_reference: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AudienceContract:
    """An organisation's contract for measuring, which an operator granted under a reference."""

    organization_id: str
    plan_id: str
    contract_reference: str
    status: ContractStatus
    period_end: datetime | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class AccountingCustomer:
    """An organisation, and the third party in the accounting system to which its invoices are addressed."""

    organization_id: str
    organization_name: str
    thirdparty_id: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything that operators have decided about billing, as of one moment."""

    providers: Sequence[PaymentProvider]
    plans: Sequence[Plan]
    offers: Sequence[Offer]
    audience_contracts: Sequence[AudienceContract]
    accounting_customers: Sequence[AccountingCustomer]
