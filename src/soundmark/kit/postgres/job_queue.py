"""Deferring background jobs, without the library that runs them: a process that serves needs no more."""

from datetime import datetime
from typing import Final

from psycopg.types.json import Jsonb

from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.tracing.context import PARENT_HEADER, STATE_HEADER, outgoing_headers


class Later(Exception):
    """Raised by a task of `UNTIL_DONE`: nothing is wrong, and it must run again at `at`."""

    def __init__(self, at: datetime) -> None:
        super().__init__("run again later")
        self.at: Final = at


class Queue:
    """A queue that defers jobs in its caller's transaction: they exist if and only if it commits."""

    async def defer(self, tx: Tx, task: str, *, lock: str, **ids: str) -> None:
        """Run `task` with `ids` once the transaction has committed.

        Jobs with the same `lock` run one at a time. A job gets only ids, and reads everything else when it runs, so it
        takes the place of an equal one that waits, be it for its lock or after a failure. The current trace is stored
        with it, and `jobs.run_worker` continues it.

        Source: Procrastinate 3.10, `sql/queries.sql`, `defer_jobs`.
        """
        # A worker passes over a row that is locked, so none begins the waiting job before the transaction has ended.
        await tx.run(
            """
            DELETE FROM procrastinate_jobs
             WHERE status = 'todo'
               AND task_name = %(task)s
               AND lock = %(lock)s
               AND args - %(of_trace)s::text[] = %(ids)s
            """,
            {"task": task, "lock": lock, "of_trace": [PARENT_HEADER, STATE_HEADER], "ids": Jsonb(ids)},
        )
        await tx.run(
            """
            SELECT procrastinate_defer_jobs_v1(
                ARRAY[ROW('default', %(task)s, 0, %(lock)s, NULL, %(args)s, NULL)::procrastinate_job_to_defer_v1]
            )
            """,
            {"task": task, "lock": lock, "args": Jsonb({**ids, **outgoing_headers()})},
        )
