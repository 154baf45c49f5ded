"""The response shapes of the catalogue, as `PUT` and `GET` answer them."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, RootModel

from soundmark.core.domain.billing.catalog import Catalog, Offer, PaymentProvider, Plan, PriceStatus, ProviderName
from soundmark.core.views.accounting_customers import AccountingCustomerView, accounting_customer_view
from soundmark.core.views.audience_contracts import AudienceContractView, audience_contract_view
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
            description="Whether the card provider has the price. An offer is for sale only if its price is "
            "`known`. `unknown`: the provider has not answered yet, and Core asks again. `missing`: the price does "
            "not exist, is inactive, or does not recur."
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
    """The billing configuration that platform administrators maintain."""

    providers: list[ProviderView]
    plans: list[PlanView]
    offers: list[OfferView]
    audience_contracts: list[AudienceContractView]
    accounting_customers: list[AccountingCustomerView]


def provider_view(provider: PaymentProvider) -> ProviderView:
    """Return the view of a payment provider."""
    return ProviderView(provider=provider.name, enabled=provider.enabled, updated_at=provider.updated_at)


def plan_view(plan: Plan) -> PlanView:
    """Return the view of a plan."""
    if plan.product == "codes":
        return PlanView(
            CodesPlanView(
                plan_id=plan.id,
                name=plan.name,
                product="codes",
                monthly_code_quota=plan.monthly_quota,
                active=plan.active,
                updated_at=plan.updated_at,
            )
        )
    return PlanView(
        AudiencePlanView(
            plan_id=plan.id,
            name=plan.name,
            product="audience",
            monthly_event_quota=plan.monthly_quota,
            active=plan.active,
            updated_at=plan.updated_at,
        )
    )


def offer_view(offer: Offer) -> OfferView:
    """Return the view of an offer."""
    if offer.provider == "card":
        assert offer.price_reference is not None, "a card offer has a price"
        return OfferView(
            CardOfferView(
                offer_id=offer.id,
                plan_id=offer.plan_id,
                provider="card",
                active=offer.active,
                price_reference=offer.price_reference,
                price_status=offer.price_status or "unknown",
                updated_at=offer.updated_at,
            )
        )
    assert offer.amount_minor is not None, "an offer of the local provider has an amount"
    assert offer.entitlement_months is not None, "and months"
    return OfferView(
        LocalOfferView(
            offer_id=offer.id,
            plan_id=offer.plan_id,
            provider="local",
            active=offer.active,
            country="TN",
            currency="TND",
            amount_minor=offer.amount_minor,
            entitlement_months=offer.entitlement_months,
            updated_at=offer.updated_at,
        )
    )


def catalog_view(catalog: Catalog) -> CatalogView:
    """Return the view of the whole catalogue."""
    return CatalogView(
        providers=[provider_view(provider) for provider in catalog.providers],
        plans=[plan_view(plan) for plan in catalog.plans],
        offers=[offer_view(offer) for offer in catalog.offers],
        audience_contracts=[audience_contract_view(contract) for contract in catalog.audience_contracts],
        accounting_customers=[accounting_customer_view(customer) for customer in catalog.accounting_customers],
    )
