"""The daily retention."""

from typing import Final

import structlog
from procrastinate import App

from soundmark.audience.context import WorkContext
from soundmark.audience.features.retention import service
from soundmark.kit.postgres.jobs import UNTIL_DONE

FORGET: Final = "forget_aged"

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: WorkContext) -> None:
    """Make `app` delete data that is older than its retention, once a day."""

    # Half an hour after midnight UTC, when every transaction of the day before has ended.
    @app.periodic(cron="31 0 * * *")
    @app.task(name=FORGET, queueing_lock=FORGET, lock=FORGET, retry=UNTIL_DONE)
    async def forget(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        _log.info("retention", **await service.forget_aged(ctx))
