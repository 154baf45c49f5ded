"""The catalogue that platform administrators maintain."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from soundmark_sdk.client.records.record import Record


@dataclass(frozen=True, slots=True)
class PaymentProvider(Record):
    """A payment provider, and whether its offers are for sale."""

    provider: Literal["card", "local"]
    enabled: bool
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Plan(Record):
    """A plan. It has the quota of its product; the other is None."""

    plan_id: str
    name: str
    product: Literal["codes", "audience"]
    active: bool
    updated_at: datetime
    monthly_code_quota: int | None = None
    monthly_event_quota: int | None = None


@dataclass(frozen=True, slots=True)
class CatalogOffer(Record):
    """An offer as an administrator sees it. What the other provider's offers have is None.

    A card offer is for sale while the status of its price is `known`.
    """

    offer_id: str
    plan_id: str
    provider: Literal["card", "local"]
    active: bool
    updated_at: datetime
    price_reference: str | None = field(default=None, repr=False)
    price_status: Literal["known", "unknown", "missing"] | None = None
    country: str | None = None
    currency: str | None = None
    amount_minor: int | None = None
    entitlement_months: int | None = None


@dataclass(frozen=True, slots=True)
class AudienceContract(Record):
    """An organisation's contract for measuring."""

    organization_id: str
    plan_id: str
    contract_reference: str
    status: Literal["active", "cancelled", "expired"]
    period_end: datetime | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class AccountingCustomer(Record):
    """The third party in the accounting system that an organisation's invoices go to."""

    organization_id: str
    organization_name: str
    thirdparty_id: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Catalog(Record):
    """Everything that administrators have decided about billing."""

    providers: tuple[PaymentProvider, ...]
    plans: tuple[Plan, ...]
    offers: tuple[CatalogOffer, ...]
    audience_contracts: tuple[AudienceContract, ...]
    accounting_customers: tuple[AccountingCustomer, ...]
