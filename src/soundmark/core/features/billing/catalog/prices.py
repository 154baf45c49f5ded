"""Asking the card provider about the price of an offer."""

from typing import Final, cast, get_args

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardPrice
from soundmark.core.domain.billing.catalog import Offer, PriceFacts, PriceInterval
from soundmark.core.problems import PaymentProviderUnavailable

UNKNOWN: Final = PriceFacts(status="unknown")
_log: Final = structlog.get_logger()


async def ask_for_price(ctx: Context, offer_id: str, price_reference: str) -> PriceFacts:
    """Return what the card provider says of a price, within ten seconds; `UNKNOWN` if it does not answer.

    A price that does not exist, is not active or does not recur is `missing`: no subscription can begin with it. Call
    it outside of transactions.

    Source: contract, section 7, offers.
    """
    asked_at = ctx.clock.now()
    try:
        price = await ctx.card.read_price(price_reference)
    except PaymentProviderUnavailable:
        _log.warning("card_price_not_read", offer_id=offer_id, reason="unavailable")
        return UNKNOWN
    reason = _find_fault(price)
    if price is None or reason is not None:
        _log.warning("card_price_not_read", offer_id=offer_id, reason=reason)
        return PriceFacts(status="missing", read_at=asked_at)
    return PriceFacts(price.currency, price.amount_minor, _interval_of(price), "known", asked_at)


def merge_price(stored: Offer, price_reference: str, asked: PriceFacts) -> PriceFacts:
    """Return what to store of the price of an offer that is changed, from what the provider has just been asked.

    What is stored stays if the price is the same and the provider did not answer now, or answered somebody who asked
    later. Of a price that is missing now, its currency, amount and interval stay.
    """
    if stored.price_reference != price_reference:
        return asked
    kept = PriceFacts(
        stored.currency, stored.amount_minor, stored.price_interval, stored.price_status, stored.price_read_at
    )
    if asked.read_at is None or (kept.read_at is not None and kept.read_at > asked.read_at):
        return kept
    if asked.status == "missing":
        return PriceFacts(kept.currency, kept.amount_minor, kept.interval, "missing", asked.read_at)
    return asked


def _find_fault(price: CardPrice | None) -> str | None:
    if price is None:
        return "unknown_price"
    if not price.is_active:
        return "inactive_price"
    return None if price.is_recurring else "price_does_not_recur"


def _interval_of(price: CardPrice) -> PriceInterval | None:
    """Return the interval of a price, None for one that the contract has no word for."""
    return cast("PriceInterval", price.interval) if price.interval in get_args(PriceInterval) else None
