"""The job that deletes the records of old deliveries."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.support.desk_webhook.service import forget_deliveries

FORGET: Final = "forget_desk_deliveries"


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` delete the records of old deliveries."""

    @app.periodic(cron="23 * * * *")
    @app.task(name=FORGET, queueing_lock=FORGET)
    async def forget(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await forget_deliveries(ctx)
