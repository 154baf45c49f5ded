"""The job that deletes what people wrote in old abuse reports."""

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.platform.abuse.service import forget_reports
from soundmark.kit.postgres.jobs import add_periodic


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` delete the texts of old reports."""
    add_periodic(app, ctx, "forget_abuse_reports", "13 * * * *", forget_reports)
