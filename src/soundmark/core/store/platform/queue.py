"""The tables of the queue of jobs, `procrastinate_jobs` and `procrastinate_events`. No arguments are read."""

from typing import Final, LiteralString

import psycopg

from soundmark.core.domain.platform.queued_job import JobState, QueuedJob
from soundmark.core.problems import JobWaiting
from soundmark.kit.postgres.transaction import Tx

_QUEUEING_LOCK: Final = "procrastinate_jobs_queueing_lock_idx_v1"
_SELECT: Final[LiteralString] = """
    SELECT jobs.id, jobs.task_name AS task, jobs.attempts,
           CASE jobs.status WHEN 'failed' THEN 'failed' ELSE 'retrying' END AS state,
           CASE jobs.status WHEN 'failed' THEN (
               SELECT max(events.at)
                 FROM procrastinate_events AS events
                WHERE events.job_id = jobs.id
                  AND events.type = 'failed'
           ) END AS failed_at,
           CASE jobs.status WHEN 'todo' THEN jobs.scheduled_at END AS next_attempt_at
      FROM procrastinate_jobs AS jobs
     WHERE (jobs.status = 'failed' OR jobs.status IN ('todo', 'doing') AND jobs.attempts > 0)
"""


async def list_jobs(tx: Tx, *, state: JobState, before_id: int | None, limit: int) -> list[QueuedJob]:
    """Return up to `limit` jobs in this state, those that were queued last first."""
    return await tx.all(
        QueuedJob,
        _SELECT
        + """
       AND (jobs.status = 'failed') = (%(state)s = 'failed')
       AND (%(before_id)s::bigint IS NULL OR jobs.id < %(before_id)s)
     ORDER BY jobs.id DESC
     LIMIT %(limit)s
        """,
        {"state": state, "before_id": before_id, "limit": limit},
    )


async def find(tx: Tx, job_id: int) -> QueuedJob | None:
    """Return a job that failed, or that has run and runs again."""
    return await tx.one_or_none(QueuedJob, _SELECT + " AND jobs.id = %(job_id)s", {"job_id": job_id})


async def update_failed(tx: Tx, job_id: int) -> bool:
    """Let a failed job run again as soon as a worker is free; return False if it is no failed job.

    Raises: JobWaiting. Lock order: docs/locks.md.
    """
    try:
        updated_count = await tx.run(
            """
            UPDATE procrastinate_jobs
               SET status = 'todo',
                   scheduled_at = NULL
             WHERE id = %(job_id)s
               AND status = 'failed'
            """,
            {"job_id": job_id},
        )
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == _QUEUEING_LOCK:
            raise JobWaiting from None
        raise
    return updated_count == 1
