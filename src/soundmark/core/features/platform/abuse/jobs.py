"""The jobs on abuse reports: one finds the Codes that they name, one deletes what people wrote in old ones."""

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.platform.abuse.service import forget_reports, settle_waiting_claims
from soundmark.kit.postgres.jobs import add_periodic


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` settle claims, and delete the texts of old reports."""
    add_periodic(app, ctx, "settle_abuse_claims", "* * * * *", settle_waiting_claims)
    add_periodic(app, ctx, "forget_abuse_reports", "13 * * * *", forget_reports)
