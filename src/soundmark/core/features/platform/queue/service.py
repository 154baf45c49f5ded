"""What administrators do with the jobs of Core's worker. Like changes of settings, retries are in the process log."""

from datetime import UTC, datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.platform.queued_job import JobState, QueuedJob
from soundmark.core.domain.tenancy.scope import User
from soundmark.core.problems import JobNotFound
from soundmark.core.store.platform import queue
from soundmark.kit.text.paging import Page, Position, cut_page

_NO_TIME: Final = datetime.fromtimestamp(0, UTC)  # The id alone orders jobs.
_log: Final = structlog.get_logger()


async def list_jobs(ctx: Context, *, state: JobState, before: Position | None, limit: int) -> Page[QueuedJob]:
    """Return the jobs in a state, those that were queued last first."""
    before_id = None if before is None else int(before.id)
    async with ctx.db.snapshot() as tx:
        rows = await queue.list_jobs(tx, state=state, before_id=before_id, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(_NO_TIME, str(row.id)))


async def retry_job(ctx: Context, user: User, job_id: int) -> QueuedJob:
    """Let a failed job run again. One that runs again already is returned unchanged.

    Every job tolerates running late and repeatedly: it reads from the rows what is left to do.

    Raises: JobNotFound for any other job; JobWaiting.
    """
    async with ctx.db.transaction() as tx:
        is_retried = await queue.update_failed(tx, job_id)
        found = await queue.find(tx, job_id)
    if found is None:
        raise JobNotFound
    if is_retried:
        _log.info("platform_job_retried", job_id=job_id, task=found.task, subject_id=user.subject_id)
    return found
