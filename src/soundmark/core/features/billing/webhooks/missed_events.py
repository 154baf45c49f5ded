"""Reading the card provider's own list of events, to find those that were never delivered."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec
import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.card_event import CARD_EVENTS
from soundmark.core.features.billing.webhooks.card_events import receive_event
from soundmark.core.features.billing.webhooks.rereads import FAILED_IN_A_ROW_MAX
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.providers.stripe.webhooks import read_event
from soundmark.core.store.billing import payment_event_polls

OVERLAP: Final = timedelta(minutes=15)  # The list may be behind, and clocks differ.
LOOK_BACK_MAX: Final = timedelta(days=25)  # The provider keeps events for 30 days.

_log: Final = structlog.get_logger()


async def poll_card_events(ctx: Context) -> int:
    """Reconcile the events since the last poll that were not processed; return their number.

    If the list cannot be read, or the provider fails about several subscriptions in a row, the next poll begins where
    this one did. Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    """
    if not await ctx.card.is_configured():
        return 0
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        polled_until = await payment_event_polls.find_polled_until(tx, "card")
    since = max((polled_until or now) - OVERLAP, now - LOOK_BACK_MAX)
    try:
        listed = await ctx.card.list_events(since, sorted(CARD_EVENTS))
    except PaymentProviderUnavailable:
        return 0  # The client has logged why.
    missed_count, is_complete = await _receive_listed(ctx, listed)
    if is_complete:
        async with ctx.db.transaction() as tx:
            await payment_event_polls.insert_or_update(tx, "card", polled_until=now)
    if missed_count:
        _log.info("card_events_missed", count=missed_count)
    return missed_count


async def _receive_listed(ctx: Context, listed: Sequence[Mapping[str, Any]]) -> tuple[int, bool]:
    """Reconcile listed events, oldest first; return how many were missed, and whether all were tried.

    A subscription that alone cannot be read must not hold up the events of others. The receipts of its own events are
    pending, so another job asks about it.
    """
    missed_count = 0
    failed: set[str] = set()  # The subscriptions since the last success.
    for each in reversed(listed):
        event = read_event(each)
        if event is None:
            continue
        # The bytes of a notification that never came are not known; those of the list stand in for them.
        digest = hashlib.sha256(msgspec.json.encode(each, order="sorted")).digest()
        try:
            missed_count += await receive_event(ctx, event, body_digest=digest) == "processed"
        except PaymentProviderUnavailable:
            failed.add(event.subscription_reference or event.id)
            if len(failed) == FAILED_IN_A_ROW_MAX:
                return missed_count, False
        else:
            failed.clear()
    return missed_count, True
