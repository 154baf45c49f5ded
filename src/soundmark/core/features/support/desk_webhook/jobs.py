"""The job that deletes the records of old deliveries."""

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.support.desk_webhook.service import forget_deliveries
from soundmark.kit.postgres.jobs import add_periodic


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` delete the records of old deliveries."""
    add_periodic(app, ctx, "forget_desk_deliveries", "23 * * * *", forget_deliveries)
