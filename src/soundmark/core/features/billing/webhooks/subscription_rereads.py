"""Asking the card provider once about each subscription that an earlier release stored without what was paid."""

from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.payment_receipt import pause_after_reread
from soundmark.core.features.billing.webhooks.card_reconciliation import CardRead, reconcile
from soundmark.core.features.billing.webhooks.rereads import FAILED_IN_A_ROW_MAX
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.store.billing import checkouts, subscriptions
from soundmark.core.store.billing.subscriptions import DueSubscription
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx

REREADS_MAX: Final = 30  # In vain. With pauses of up to an hour, that is a day.

_AT_ONCE: Final = 50

_log: Final = structlog.get_logger()


class _NotOurs(Exception):
    """Another worker asks. Nothing is stored: a read that was begun would have that worker ask again."""


async def reread_subscriptions(ctx: Context) -> int:
    """Ask about the live card subscriptions that are due; return the number of those that the provider answered about.

    Stops if the provider fails several times in a row; what is still due is asked about after a pause. A subscription
    is no longer due from the transaction on that applies the answer, so it is asked about again only if this worker
    dies in between. Safe at any time and concurrently: of two workers, one asks.

    Raises: DatabaseUnavailable.
    """
    if not await ctx.card.is_configured():
        return 0
    answered_count = failed_count = 0
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            found = await subscriptions.list_due(tx, now=ctx.clock.now(), limit=_AT_ONCE)
        if not found:
            return answered_count
        for due in found:
            try:
                answered_count += await _reread(ctx, due)
            except PaymentProviderUnavailable:
                failed_count += 1
                if failed_count == FAILED_IN_A_ROW_MAX:
                    return answered_count
            else:
                failed_count = 0


async def _reread(ctx: Context, due: DueSubscription) -> bool:
    """Ask about one subscription; return whether this worker has asked. Lock order: docs/locks.md.

    The next time is set before asking, so that it is due again even if this worker dies.

    Raises: PaymentProviderUnavailable.
    """
    try:
        async with ctx.db.transaction(tenant=due.organization_id) as tx:
            read = await _begin(tx, due, now=ctx.clock.now())
    except _NotOurs:
        return False
    await reconcile(ctx, read)
    _log.info("subscription_reread", organization_id=due.organization_id, subscription_id=due.id)
    return True


async def _begin(tx: Tx, due: DueSubscription, *, now: datetime) -> CardRead:
    """Begin to read a subscription.

    Raises: _NotOurs.
    """
    rereads = due.rereads + 1
    reread_at = now + pause_after_reread(rereads) if rereads < REREADS_MAX else None
    number = await checkouts.update_reads_begun(tx, due.organization_id, due.checkout_id)
    checkout = await checkouts.find(tx, due.organization_id, due.checkout_id)
    is_ours = await subscriptions.update_reread(tx, due.organization_id, due.id, reread_at=reread_at, now=now)
    if checkout is None or number is None or not is_ours:
        raise _NotOurs
    return CardRead(checkout, number, None, is_bound=True, due_subscription_id=due.id)
