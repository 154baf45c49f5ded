"""The command that lists what customers can buy."""

from collections.abc import Sequence

from soundmark.core.context import Context
from soundmark.core.domain.billing.catalog import ListedOffer
from soundmark.core.store.billing import offers


async def list_offers(ctx: Context, *, country: str | None) -> Sequence[ListedOffer]:
    """List what is for sale, everywhere or in one country, given by its two capital letters.

    An offer of the card provider is for sale in every country.

    Source: API v1, "Billing"; contract, section 7, offers.
    """
    async with ctx.db.snapshot() as tx:
        return await offers.list_for_sale(tx, country=country)
