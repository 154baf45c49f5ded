"""The job that asks the card provider for the prices of its offers."""

from datetime import timedelta
from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.billing.catalog import CardPriceSource
from soundmark.core.features.billing.catalog.prices import UNKNOWN, ask_for_price
from soundmark.core.store.billing import offers
from soundmark.kit.postgres.jobs import add_periodic

READ_AGAIN_AFTER: Final = timedelta(days=1)
FAILED_IN_A_ROW_MAX: Final = 3  # Each failure may take the whole deadline of a call.

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` ask about each price once a day, and about those that are unknown every minute."""
    add_periodic(app, ctx, "read_card_prices", "* * * * *", read_prices)


async def read_prices(ctx: Context) -> int:
    """Ask about the prices that were not read for a day, or never; return about how many the provider answered.

    1. List the prices.
    2. Ask the provider about one, outside of any transaction.
    3. Store the answer, unless the offer has another price by then, or somebody asked later.

    Ends when the provider fails several times in a row. A failure leaves what is known. Safe to run late, repeatedly
    and concurrently.

    Raises: DatabaseUnavailable.
    Source: contract, section 7, offers.
    """
    if not await ctx.card.is_configured():
        return 0
    async with ctx.db.snapshot() as tx:
        due = await offers.list_price_sources(tx, before=ctx.clock.now() - READ_AGAIN_AFTER)
    answered_count = failed_count = 0
    for source in due:
        if await _read(ctx, source):
            answered_count, failed_count = answered_count + 1, 0
            continue
        failed_count += 1
        if failed_count == FAILED_IN_A_ROW_MAX:
            break
    return answered_count


async def _read(ctx: Context, source: CardPriceSource) -> bool:
    price = await ask_for_price(ctx, source.offer_id, source.price_reference)
    if price == UNKNOWN:
        return False
    async with ctx.db.transaction() as tx:
        is_stored = await offers.update_price(tx, source, price)
    if is_stored:
        _log.info("card_price_read", offer_id=source.offer_id, price_status=price.status)
    return True
