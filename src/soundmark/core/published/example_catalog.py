"""A genuine example of a catalogue: a plan of Codes for sale through both providers, and a contract."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from soundmark.core.domain.billing.catalog import (
    CONTRACT_PLAN_ID,
    AccountingCustomer,
    AudienceContract,
    Catalog,
    ListedOffer,
    Offer,
    PaymentProvider,
    Plan,
)
from soundmark.core.domain.codes.quota import STARTER_PLAN_ID
from soundmark.core.features.billing.catalog.views import catalog_view, offer_view, plan_view, provider_view
from soundmark.core.features.billing.offers.wire import offer_list

_AT: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
_CARD: Final = PaymentProvider("card", enabled=True, updated_at=_AT)
_STARTER: Final = Plan(STARTER_PLAN_ID, "Codes Starter", "codes", 100, None, active=True, updated_at=_AT)
_CONTRACT_PLAN: Final = Plan(CONTRACT_PLAN_ID, "Audience Contract", "audience", None, 5000, active=True, updated_at=_AT)
_PLAN: Final = replace(_STARTER, id="plan_codes_studio", name="Codes Studio", monthly_code_quota=5000)
_CARD_OFFER: Final = Offer(
    id="offer_studio_card",
    plan_id=_PLAN.id,
    provider="card",
    active=True,
    price_reference="price_1PexampleOfAPrice",
    country=None,
    currency="EUR",
    amount_minor=4900,
    price_interval="month",
    entitlement_months=None,
    price_read_at=_AT,
    updated_at=_AT,
    price_status="known",
)
_LOCAL_OFFER: Final = replace(
    _CARD_OFFER,
    id="offer_studio_local",
    provider="local",
    price_reference=None,
    country="TN",
    currency="TND",
    amount_minor=149_000,
    price_interval=None,
    entitlement_months=1,
    price_read_at=None,
    price_status=None,
)


def example_catalog(organization_id: str, organization_name: str) -> dict[str, Any]:
    """Return the responses about the catalogue and its offers, by operation id."""
    customer = AccountingCustomer(organization_id, organization_name, thirdparty_id=17, updated_at=_AT)
    contract = AudienceContract(
        organization_id=organization_id,
        plan_id=CONTRACT_PLAN_ID,
        contract_reference="C-2026-041",
        status="active",
        period_end=datetime(2028, 1, 1, tzinfo=UTC),
        updated_at=_AT,
    )
    catalog = Catalog(
        providers=[_CARD, replace(_CARD, name="local")],
        plans=[_CONTRACT_PLAN, _STARTER, _PLAN],
        offers=[_CARD_OFFER, _LOCAL_OFFER],
        audience_contracts=[contract],
        accounting_customers=[customer],
    )
    return {
        "get_catalog": catalog_view(catalog),
        "put_payment_provider": provider_view(_CARD),
        "put_plan": plan_view(_PLAN),
        "put_offer": offer_view(_CARD_OFFER),
        "list_offers": offer_list(map(_list_offer, (_CARD_OFFER, _LOCAL_OFFER))),
    }


def _list_offer(offer: Offer) -> ListedOffer:
    return ListedOffer(
        id=offer.id,
        plan_id=_PLAN.id,
        plan_name=_PLAN.name,
        product=_PLAN.product,
        monthly_quota=_PLAN.monthly_quota,
        provider=offer.provider,
        country=offer.country,
        currency=offer.currency,
        amount_minor=offer.amount_minor,
        price_interval=offer.price_interval,
        entitlement_months=offer.entitlement_months,
    )
