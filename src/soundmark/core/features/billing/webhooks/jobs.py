"""Jobs that ask the payment providers again, so that a lost notification heals by itself."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.billing.webhooks import missed_events, rereads

REREAD: Final = "reread_payments"
POLL: Final = "poll_card_events"


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` ask the providers again."""

    @app.periodic(cron="* * * * *")
    @app.task(name=REREAD, queueing_lock=REREAD)
    async def reread(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await rereads.reread_card(ctx)
        await rereads.reread_local(ctx)

    @app.periodic(cron="*/15 * * * *")
    @app.task(name=POLL, queueing_lock=POLL)
    async def poll(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await missed_events.poll_card_events(ctx)
