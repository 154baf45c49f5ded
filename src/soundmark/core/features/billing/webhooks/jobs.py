"""Jobs that ask the payment providers again, so that a lost notification heals by itself, and that tidy receipts."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.billing.payment_receipt import FOREIGN_KEPT
from soundmark.core.features.billing.webhooks import missed_events, rereads
from soundmark.core.store.billing import receipts
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.jobs import add_periodic

_AT_ONCE: Final = 500  # Keeps transactions short.


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` ask the providers again."""
    add_periodic(app, ctx, "reread_payments", "* * * * *", rereads.reread_card, rereads.forget_counts)
    add_periodic(app, ctx, "poll_card_events", "*/15 * * * *", missed_events.poll_card_events)
    add_periodic(app, ctx, "forget_foreign_receipts", "37 4 * * *", forget_foreign_receipts)


async def forget_foreign_receipts(ctx: Context) -> int:
    """Delete the receipts of events that are not ours, a month after they arrived; return how many.

    A payment endpoint that sells other things too sends all of its events. A receipt that led to something is kept for
    as long as its organisation, so that a repeated event is never counted twice. Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    Source: API v1, "Inbound provider webhooks", receipt rules.
    """
    before, forgotten_count = ctx.clock.now() - FOREIGN_KEPT, 0
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            count = await receipts.delete_foreign(tx, before=before, limit=_AT_ONCE)
        forgotten_count += count
        if count < _AT_ONCE:
            return forgotten_count
