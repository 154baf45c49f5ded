"""Background jobs: a queue in a component's own database, and the worker that empties it."""

import asyncio
import contextlib
import signal
from typing import Final

from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from soundmark.kit.postgres import CONNECT_TIMEOUT_S, connect_options
from soundmark.kit.secret import Secret

KEPT_DAYS: Final = 7
CONCURRENCY: Final = 8
GRACE_S: Final = 10

_ACQUIRE_TIMEOUT_S: Final = 3.0
_HEARTBEAT_S: Final = 10
_STALLED_AFTER_S: Final = 30  # Three heartbeats.
# A machine that was off at the hour of a daily task makes up for it when it is on again.
_OVERDUE_MAX_S: Final = 24 * 60 * 60


class WorkerFailed(Exception):  # noqa: N818 - named for what happened
    """The worker lost its database, or never had it; whoever supervises it starts it again."""


class _Pool(AsyncConnectionPool):
    """A pool that does not wait half a minute for a database that is not there."""

    async def open(self, wait: bool = False, timeout: float = CONNECT_TIMEOUT_S * 2) -> None:  # noqa: ASYNC109 - theirs
        await super().open(wait, timeout)


def jobs_app(url: Secret, *, application_name: str, pool_size: int = 4) -> App:
    """The queue in the database at `url`, with its own housekeeping; not open yet.

    A component adds its tasks to it. A task must bear to be run twice: a worker that dies leaves its job to another.
    """
    connector = PsycopgConnector(
        pool_factory=_Pool,
        conninfo=url.reveal(),
        min_size=1,
        max_size=pool_size,
        timeout=_ACQUIRE_TIMEOUT_S,
        kwargs=connect_options(application_name),
    )
    app = App(connector=connector, periodic_defaults={"max_delay": _OVERDUE_MAX_S})
    _add_housekeeping(app)
    return app


async def run_worker(app: App) -> None:
    """Run jobs until SIGTERM or SIGINT, then finish what is under way for at most `GRACE_S` seconds.

    Raises: WorkerFailed.
    """
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    assert current is not None, "runs in a task"
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, current.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        try:
            async with app.open_async():
                await app.run_worker_async(
                    concurrency=CONCURRENCY,
                    install_signal_handlers=False,
                    shutdown_graceful_timeout=GRACE_S,
                    update_heartbeat_interval=_HEARTBEAT_S,
                    stalled_worker_timeout=_STALLED_AFTER_S,
                )
        except (ConnectorException, PoolTimeout) as error:
            raise WorkerFailed("the database cannot be reached") from error
        # Procrastinate takes a failed connection for a reason to stop, and stops without an error.
        raise WorkerFailed("the connection to the database was lost")


def _add_housekeeping(app: App) -> None:
    @app.periodic(cron="17 3 * * *")
    @app.task(name="remove_old_jobs", queueing_lock="remove_old_jobs")
    async def remove_old_jobs(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        """Forget jobs that ended more than a week ago, except failed ones, which a person should see."""
        await app.job_manager.delete_old_jobs(nb_hours=KEPT_DAYS * 24, include_cancelled=True, include_aborted=True)

    @app.periodic(cron="* * * * *")
    @app.task(name="retry_stalled_jobs", queueing_lock="retry_stalled_jobs", pass_context=True)
    async def retry_stalled_jobs(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - see above
        """Give the jobs of workers that died to those that live."""
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_STALLED_AFTER_S):
            if job.id != context.job.id:
                await app.job_manager.retry_job(job)
