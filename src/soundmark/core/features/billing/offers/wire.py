"""The response shapes of offers. They hold nothing of an organisation, and no reference of a provider."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from soundmark.core.domain.billing.catalog import ListedOffer, PriceInterval, Product, ProviderName
from soundmark.wire.shape import Wire


class OfferedPlan(Wire):
    """The plan that an offer sells."""

    id: str
    name: str
    product: Product
    monthly_quota: Annotated[int, Field(description="Codes or events in a calendar month (UTC).")]


class ListedOfferView(Wire):
    """An offer. `amount_minor` is null for a card offer in tiers, and `interval` if it is no single month or year."""

    id: str
    plan: OfferedPlan
    provider: ProviderName
    country: Annotated[str | None, Field(description="Null: for sale in every country.")]
    currency: str | None
    amount_minor: Annotated[int | None, Field(description="The price in the currency's minor unit, for display.")]
    interval: Annotated[PriceInterval | None, Field(description="How often a card offer is paid.")]
    entitlement_months: Annotated[
        int | None, Field(description="How many months one payment to the local provider entitles for.")
    ]


class OfferList(Wire):
    """Everything that is for sale."""

    data: list[ListedOfferView]


def offer_list(offers: Iterable[ListedOffer]) -> OfferList:
    """Return the view of what is for sale."""
    return OfferList(data=[_offer_view(offer) for offer in offers])


def _offer_view(offer: ListedOffer) -> ListedOfferView:
    plan = OfferedPlan(id=offer.plan_id, name=offer.plan_name, product=offer.product, monthly_quota=offer.monthly_quota)
    return ListedOfferView.from_record(offer, plan=plan, interval=offer.price_interval)
