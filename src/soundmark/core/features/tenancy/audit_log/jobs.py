"""The job that enters the heads of audit chains into the transparency log."""

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.tenancy.audit_log.heads import log_heads
from soundmark.kit.postgres.jobs import add_periodic


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` enter the heads of chains that have grown, once a minute."""
    add_periodic(app, ctx, "log_audit_heads", "* * * * *", log_heads)
