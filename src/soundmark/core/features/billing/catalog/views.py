"""The response shapes of the catalogue, as `PUT` and `GET` answer them."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, RootModel

from soundmark.core.domain.billing.catalog import Catalog, Offer, PaymentProvider, Plan, PriceStatus, ProviderName
from soundmark.core.views.billing import AccountingCustomerView, AudienceContractView
from soundmark.wire.shape import Timestamp, Wire


class ProviderView(Wire):
    """A payment provider."""

    provider: ProviderName
    enabled: bool
    updated_at: Timestamp


class CodesPlanView(Wire):
    """A plan of Codes."""

    plan_id: str
    name: str
    product: Literal["codes"]
    monthly_code_quota: int
    active: bool
    updated_at: Timestamp


class AudiencePlanView(Wire):
    """A plan of Audience."""

    plan_id: str
    name: str
    product: Literal["audience"]
    monthly_event_quota: int
    active: bool
    updated_at: Timestamp


class CardOfferView(Wire):
    """A plan for sale through the card provider."""

    offer_id: str
    plan_id: str
    provider: Literal["card"]
    active: bool
    price_reference: str
    price_status: Annotated[
        PriceStatus,
        Field(
            description="Whether the card provider has the price. Only a `known` one is for sale. `unknown`: the "
            "provider has not answered yet and is asked again. `missing`: it is gone, inactive or does not recur."
        ),
    ]
    updated_at: Timestamp


class LocalOfferView(Wire):
    """A plan for sale through the local provider."""

    offer_id: str
    plan_id: str
    provider: Literal["local"]
    active: bool
    country: Literal["TN"]
    currency: Literal["TND"]
    amount_minor: int
    entitlement_months: int
    updated_at: Timestamp


class PlanView(RootModel[Annotated[CodesPlanView | AudiencePlanView, Discriminator("product")]]):
    """A plan, with the quota of its product."""

    model_config = ConfigDict(frozen=True, strict=True)


class OfferView(RootModel[Annotated[CardOfferView | LocalOfferView, Discriminator("provider")]]):
    """A plan for sale, with the price of its provider."""

    model_config = ConfigDict(frozen=True, strict=True)


class CatalogView(Wire):
    """Everything that operators have decided about billing."""

    providers: list[ProviderView]
    plans: list[PlanView]
    offers: list[OfferView]
    audience_contracts: list[AudienceContractView]
    accounting_customers: list[AccountingCustomerView]


def provider_view(provider: PaymentProvider) -> ProviderView:
    """Return the view of a payment provider."""
    return ProviderView.from_record(provider, provider=provider.name)


def plan_view(plan: Plan) -> PlanView:
    """Return the view of a plan."""
    shape = CodesPlanView if plan.product == "codes" else AudiencePlanView
    return PlanView(shape.from_record(plan, plan_id=plan.id))


def offer_view(offer: Offer) -> OfferView:
    """Return the view of an offer."""
    if offer.provider == "card":
        return OfferView(CardOfferView.from_record(offer, offer_id=offer.id))
    return OfferView(LocalOfferView.from_record(offer, offer_id=offer.id, country="TN", currency="TND"))


def catalog_view(catalog: Catalog) -> CatalogView:
    """Return the view of the whole catalogue."""
    return CatalogView(
        providers=[provider_view(provider) for provider in catalog.providers],
        plans=[plan_view(plan) for plan in catalog.plans],
        offers=[offer_view(offer) for offer in catalog.offers],
        audience_contracts=[AudienceContractView.from_record(contract) for contract in catalog.audience_contracts],
        accounting_customers=[
            AccountingCustomerView.from_record(customer) for customer in catalog.accounting_customers
        ],
    )
