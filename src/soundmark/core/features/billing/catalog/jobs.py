"""Jobs that ask the card provider for the prices of its offers, which are for display only."""

from datetime import timedelta
from typing import Final, cast, get_args

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardPrice
from soundmark.core.domain.billing.catalog import CardPriceSource, PriceInterval
from soundmark.core.features.billing.catalog.service import READ_PRICE
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.store.billing import offers

READ_PRICES: Final = "read_card_prices"
# Less than a day, so that the hourly job reads each price at the same time of every day.
READ_AGAIN_AFTER: Final = timedelta(hours=23, minutes=30)

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` read prices after a change, and once a day."""

    @app.task(name=READ_PRICE)
    async def read(offer_id: str) -> None:
        await read_price(ctx, offer_id=offer_id)

    @app.periodic(cron="29 * * * *")
    @app.task(name=READ_PRICES, queueing_lock=READ_PRICES)
    async def read_due(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await read_prices(ctx)


async def read_price(ctx: Context, *, offer_id: str) -> bool:
    """Read the price of a card offer; return whether the provider answered. Otherwise the hourly job asks again.

    1. Find the offer's price.
    2. Ask the provider, outside any transaction.
    3. Store the answer, unless the offer has another price by then.

    Safe to run late, repeatedly and concurrently. A failure leaves what is known.

    Raises: DatabaseUnavailable.
    Source: contract, section 7, offers.
    """
    async with ctx.db.snapshot() as tx:
        source = await offers.find_price_source(tx, offer_id)
    return source is None or await _read(ctx, source)


async def read_prices(ctx: Context) -> int:
    """Read the prices that were not read for a day, or never; return how many there were.

    Ends at the first failure, because each may take the whole deadline.

    Raises: DatabaseUnavailable.
    Source: contract, section 7, offers.
    """
    async with ctx.db.snapshot() as tx:
        due = await offers.list_price_sources(tx, before=ctx.clock.now() - READ_AGAIN_AFTER)
    for count, source in enumerate(due):
        if not await _read(ctx, source):
            return count
    return len(due)


async def _read(ctx: Context, source: CardPriceSource) -> bool:
    read_at = ctx.clock.now()
    try:
        price = await ctx.card.read_price(source.price_reference)
    except PaymentProviderUnavailable:
        _log.warning("card_price_not_read", offer_id=source.offer_id, reason="unavailable")
        return False
    if price is None:
        _log.warning("card_price_not_read", offer_id=source.offer_id, reason="unknown_price")
        return True
    async with ctx.db.transaction() as tx:
        await offers.update_price(tx, source, price, interval=_interval_of(price), read_at=read_at)
    _log.info("card_price_read", offer_id=source.offer_id)
    return True


def _interval_of(price: CardPrice) -> PriceInterval | None:
    """Return the interval of a price, None for one that the contract has no word for."""
    return cast("PriceInterval", price.interval) if price.interval in get_args(PriceInterval) else None
