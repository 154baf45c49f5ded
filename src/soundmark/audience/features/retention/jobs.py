"""The daily retention."""

from typing import Final

import structlog
from procrastinate import App

from soundmark.audience.context import WorkContext
from soundmark.audience.features.retention import service
from soundmark.kit.postgres.jobs import UNTIL_DONE, add_periodic

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: WorkContext) -> None:
    """Make `app` delete data that is older than its retention, once a day."""
    # Half an hour after midnight UTC, when every transaction of the day before has ended.
    add_periodic(app, ctx, "forget_aged", "31 0 * * *", _forget_aged, lock="forget_aged", retry=UNTIL_DONE)


async def _forget_aged(ctx: WorkContext) -> None:
    _log.info("retention", **await service.forget_aged(ctx))
