"""The route of offers."""

from typing import Annotated

from fastapi import Query

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx
from soundmark.core.features.billing.offers import example
from soundmark.core.features.billing.offers.wire import OfferList, offer_list
from soundmark.core.store.billing import offers

operations = Operations("Billing")

CountryQuery = Annotated[
    str | None,
    Query(
        pattern="^[A-Za-z]{2}$",
        description="Only what is for sale in this country, given by two letters (ISO 3166-1). Default: everything.",
        examples=["TN"],
    ),
]


@operations.add("GET", "/v1/billing/offers", Operation("offer.list", tenant="none"), example=offer_list(example.OFFERS))
async def list_offers(ctx: Ctx, country: CountryQuery = None) -> OfferList:
    """List what is for sale: active offers of active plans of enabled payment providers.

    An offer of the card provider is listed while the provider has its price.
    """
    async with ctx.db.snapshot() as tx:
        return offer_list(await offers.list_for_sale(tx, country=country and country.upper()))
