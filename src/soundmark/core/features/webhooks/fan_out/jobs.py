"""The jobs that announce expired Codes, and that delete what was sent long ago."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out.expiry import announce_expiries
from soundmark.core.features.webhooks.fan_out.retention import drop_abandoned, forget_events

ANNOUNCE: Final = "announce_expiries"
FORGET: Final = "forget_webhook_events"
DROP: Final = "drop_abandoned_deliveries"


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` announce expired Codes, and delete old events and the deliveries of deleted endpoints."""

    # The last field is seconds: an expiry is announced within a minute.
    @app.periodic(cron="* * * * * */30")
    @app.task(name=ANNOUNCE, queueing_lock=ANNOUNCE)
    async def announce(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await announce_expiries(ctx)

    @app.periodic(cron="51 * * * *")
    @app.task(name=FORGET, queueing_lock=FORGET)
    async def forget(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await forget_events(ctx)

    @app.periodic(cron="*/5 * * * *")
    @app.task(name=DROP, queueing_lock=DROP)
    async def drop(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await drop_abandoned(ctx)
