"""Jobs that ask the payment providers again, so that a lost notification heals by itself, and that tidy receipts."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.billing.payment_receipt import FOREIGN_KEPT
from soundmark.core.features.billing.webhooks import missed_events, rereads, subscription_rereads
from soundmark.core.store.billing import receipts
from soundmark.kit.postgres.database import EVERY_TENANT

REREAD: Final = "reread_payments"
REREAD_SUBSCRIPTIONS: Final = "reread_subscriptions"
POLL: Final = "poll_card_events"
FORGET: Final = "forget_foreign_receipts"
_AT_ONCE: Final = 500  # Keeps transactions short.


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` ask the providers again."""

    @app.periodic(cron="* * * * *")
    @app.task(name=REREAD, queueing_lock=REREAD)
    async def reread(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await rereads.reread_card(ctx)
        await rereads.forget_counts(ctx)

    @app.periodic(cron="* * * * *")
    @app.task(name=REREAD_SUBSCRIPTIONS, queueing_lock=REREAD_SUBSCRIPTIONS)
    async def reread_subscriptions(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await subscription_rereads.reread_subscriptions(ctx)

    @app.periodic(cron="*/15 * * * *")
    @app.task(name=POLL, queueing_lock=POLL)
    async def poll(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await missed_events.poll_card_events(ctx)

    @app.periodic(cron="37 4 * * *")
    @app.task(name=FORGET, queueing_lock=FORGET)
    async def forget(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await forget_foreign_receipts(ctx)


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
