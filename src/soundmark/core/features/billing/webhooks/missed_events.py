"""Reading the card provider's own list of events, for those of which no notification arrived."""

import hashlib
from datetime import timedelta
from typing import Final

import msgspec
import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.card_event import CARD_EVENTS
from soundmark.core.features.billing.webhooks.card_events import receive_event
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.providers.stripe.webhooks import read_event
from soundmark.core.store.billing import payment_event_polls

OVERLAP: Final = timedelta(minutes=15)  # The list may be behind, and clocks differ.
LOOK_BACK_MAX: Final = timedelta(days=25)  # The provider keeps events for 30 days.

_log: Final = structlog.get_logger()


async def poll_card_events(ctx: Context) -> int:
    """Reconcile the events since the last poll that were not processed; return their number.

    If the provider fails, the next poll begins where this one did. Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    """
    if not await ctx.card.is_configured():
        return 0
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        polled_until = await payment_event_polls.find_polled_until(tx, "card")
    since = max((polled_until or now) - OVERLAP, now - LOOK_BACK_MAX)
    missed_count = 0
    try:
        listed = await ctx.card.list_events(since, sorted(CARD_EVENTS))
        for each in reversed(listed):  # Oldest first.
            event = read_event(each)
            if event is None:
                continue
            # The bytes of a notification that never came are not known; those of the list stand in for them.
            digest = hashlib.sha256(msgspec.json.encode(each, order="sorted")).digest()
            outcome = await receive_event(ctx, event, body_digest=digest)
            missed_count += outcome == "processed"
    except PaymentProviderUnavailable:
        return missed_count  # The client has logged why.
    async with ctx.db.transaction() as tx:
        await payment_event_polls.insert_or_update(tx, "card", polled_until=now)
    if missed_count:
        _log.info("card_events_missed", count=missed_count)
    return missed_count
