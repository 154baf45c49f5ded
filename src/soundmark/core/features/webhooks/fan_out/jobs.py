"""The jobs that announce expired Codes, and that delete what was sent long ago."""

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out.expiry import announce_expiries
from soundmark.core.features.webhooks.fan_out.retention import drop_abandoned, forget_events
from soundmark.kit.postgres.jobs import add_periodic


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` announce expired Codes, and delete old events and the deliveries of deleted endpoints."""
    # The last field is seconds: an expiry is announced within a minute.
    add_periodic(app, ctx, "announce_expiries", "* * * * * */30", announce_expiries)
    add_periodic(app, ctx, "forget_webhook_events", "51 * * * *", forget_events)
    add_periodic(app, ctx, "drop_abandoned_deliveries", "*/5 * * * *", drop_abandoned)
