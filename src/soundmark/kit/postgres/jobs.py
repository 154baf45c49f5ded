"""Background jobs: a queue in a component's own database, and the worker that empties it."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import Any, Final, TypeVar

import psycopg
import structlog
from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.job_queue import Later
from soundmark.kit.postgres.schema_version import SchemaOutdated, require_current
from soundmark.kit.postgres.sessions import (
    CONNECT_TIMEOUT_S,
    DIRECT,
    CannotConnect,
    ListeningConnection,
    SessionOptions,
    connect_options,
)
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS
from soundmark.kit.tracing.context import PARENT_HEADER, STATE_HEADER, current
from soundmark.kit.tracing.spans import enter_job

KEPT_DAYS: Final = 7
CONCURRENCY: Final = 8
GRACE_S: Final = 10

_POOL_SIZE: Final = 2  # Its statements are short, and each connection costs PostgreSQL 3 to 5 MiB.
_ACQUIRE_TIMEOUT_S: Final = 3.0
RECONNECT_MAX_S: Final = 60
_RECONNECT_PAUSE_S: Final = 1.0
_HEARTBEAT_S: Final = 10
_STALLED_AFTER_S: Final = 30  # Three heartbeats.
# A machine that was off at the time of a daily task runs it when it is on again.
_OVERDUE_MAX_S: Final = 24 * 60 * 60
_TROUBLE_PAUSE_S: Final = 5
_TROUBLE_PAUSE_MAX_S: Final = 600
_SOON_PAUSE_MAX_S: Final = 30
_DOUBLINGS_MAX: Final = 10

C = TypeVar("C")

_entropy: Final = SystemEntropy()  # For the ids of traces, which no test needs to know.
_log: Final = structlog.get_logger()


class WorkerFailed(Exception):
    """The worker cannot work, such as without a database; its supervisor restarts it."""


class _UntilDone(BaseRetryStrategy):
    def __init__(self, pause_max_s: int) -> None:
        self._pause_max_s: Final = pause_max_s

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        if isinstance(exception, Later):
            return RetryDecision(retry_at=exception.at)
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision()  # This worker is stopping; another one may begin at once.
        pause_s = min(_TROUBLE_PAUSE_S * 2 ** min(job.attempts, _DOUBLINGS_MAX), self._pause_max_s)
        # Only the error's name: the text of a library's error may contain an address, or worse.
        _log.warning(
            "job_failed", task=job.task_name, job_id=job.id, error=type(exception).__name__, again_in_s=pause_s
        )
        return RetryDecision(retry_in={"seconds": pause_s})


# For a task that runs until it ends without an error.
UNTIL_DONE: Final = _UntilDone(_TROUBLE_PAUSE_MAX_S)
# For a rare task whose work others wait for: it runs again soon after what was away has come back.
UNTIL_DONE_SOON: Final = _UntilDone(_SOON_PAUSE_MAX_S)


async def _continue_trace(run: Callable[[], Awaitable[Any]], context: JobContext, _worker: Worker) -> Any:
    """Run a job in the trace that was stored with it, or else in a new one; what it is called with is without it."""
    ids: dict[str, Any] = context.job.task_kwargs
    traceparent, tracestate = ids.pop(PARENT_HEADER, None), ids.pop(STATE_HEADER, None)
    place = enter_job(context.job.task_name, "consumer", _entropy, traceparent, tracestate)
    place.note({"soundmark.job_id": context.job.id or 0})
    # Also for what is logged when the job has failed. Each job has a task of its own.
    current.set(place.trace)
    with place:
        return await run()


class _Jobs(JobManager):
    """A manager of jobs that leaves none as if it ran for ever, holding the lock for which others wait.

    It ends a job that cannot be retried because its successor is already waiting: only one job of a queueing lock may
    wait. It stops the worker that cannot record how a job ended: the worker has forgotten the job, but as long as it
    sends heartbeats, nobody else takes the job up. Procrastinate only raises, in a task that nobody awaits.
    """

    def __init__(self, connector: BaseConnector) -> None:
        super().__init__(connector)
        self._worker: Worker | None = None

    async def note_worker(self, run: Callable[[], Awaitable[Any]], _context: JobContext, worker: Worker) -> Any:
        """Run a job, and remember whose it is."""
        self._worker = worker
        return await run()

    async def finish_job_by_id_async(self, job_id: int, status: Status, delete_job: bool) -> None:
        with self._stopping_if_lost(job_id):
            await super().finish_job_by_id_async(job_id, status, delete_job)

    async def retry_job_by_id_async(
        self,
        job_id: int,
        retry_at: datetime,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        try:
            with self._stopping_if_lost(job_id):
                await super().retry_job_by_id_async(job_id, retry_at, priority, queue, lock)
        except UniqueViolation:
            _log.info("job_superseded", job_id=job_id)
            await self.finish_job_by_id_async(job_id, Status.ABORTED, delete_job=False)

    @contextlib.contextmanager
    def _stopping_if_lost(self, job_id: int) -> Iterator[None]:
        try:
            yield
        except ConnectorException as error:
            if not isinstance(error.__cause__, CONNECTION_ERRORS):
                raise
            _log.warning("job_end_not_recorded", job_id=job_id)
            if self._worker is not None:
                self._worker.stop()  # type: ignore[no-untyped-call]  # theirs


class _Pool(AsyncConnectionPool):
    """A pool that does not wait half a minute for an unavailable database."""

    async def open(self, wait: bool = False, timeout: float = CONNECT_TIMEOUT_S * 2) -> None:  # noqa: ASYNC109 - theirs
        await super().open(wait, timeout)


async def _commit_each_statement(connection: psycopg.AsyncConnection[Any]) -> None:
    """Save the queue a BEGIN and a COMMIT for each statement: each of them is a change of its own."""
    await connection.set_autocommit(True)


def jobs_app(url: Secret, *, application_name: str, session: SessionOptions = DIRECT) -> App:
    """Return the queue in the database at `url`, with its housekeeping tasks; it is not open yet.

    A component adds its tasks. A task must tolerate running twice, because another worker repeats the job of one that
    died.
    """
    connector = PsycopgConnector(
        pool_factory=_Pool,
        conninfo=url.reveal(),
        min_size=1,
        max_size=_POOL_SIZE,
        timeout=_ACQUIRE_TIMEOUT_S,
        connection_class=ListeningConnection,
        kwargs=connect_options(url, application_name, session),
        configure=_commit_each_statement,
    )
    manager = _Jobs(connector)
    app = App(
        connector=connector,
        periodic_defaults={"max_delay": _OVERDUE_MAX_S},
        worker_defaults={"worker_middleware": [manager.note_worker, _continue_trace]},
    )
    app.job_manager = manager
    _add_housekeeping(app)
    return app


def add_periodic(
    app: App,
    ctx: C,
    name: str,
    cron: str,
    *work: Callable[[C], Awaitable[object]],
    lock: str | None = None,
    retry: BaseRetryStrategy | bool = False,
) -> None:
    """Make `app` do `work` with `ctx`, one after the other, at the times of `cron`; docs/jobs.md lists every such job.

    While one waits, no second one is queued.
    """

    async def run(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        for each in work:
            await each(ctx)

    app.periodic(cron=cron)(app.task(name=name, queueing_lock=name, lock=lock, retry=retry)(run))


def add_deferred(
    app: App, ctx: C, name: str, work: Callable[..., Awaitable[object]], *, retry: BaseRetryStrategy = UNTIL_DONE
) -> None:
    """Make `app` do `work` with `ctx` and the ids that `Queue.defer` queued, until it ends without an error."""

    async def run(**ids: str) -> None:
        await work(ctx, **ids)

    app.task(name=name, retry=retry)(run)


async def open_database(db: Database, package: str, *, schema: str | None = None) -> None:
    """Open the database, and require every table that the jobs of `package` need, as `require_current` does.

    Raises: WorkerFailed; the database is closed then.
    """
    try:
        await db.open()
    except CannotConnect as refused:
        raise WorkerFailed(f"the database {refused.reason}") from None
    try:
        await _require_schema(db, package, schema)
    except BaseException:
        await db.close()
        raise


async def _require_schema(db: Database, package: str, schema: str | None) -> None:
    try:
        await require_current(db, package, schema=schema)
    except DatabaseUnavailable:
        raise WorkerFailed("the database does not answer") from None
    except SchemaOutdated as outdated:
        raise WorkerFailed(str(outdated)) from None


async def run_worker(app: App, session: SessionOptions = DIRECT) -> None:
    """Run jobs until SIGTERM or SIGINT, then give running jobs `GRACE_S` seconds to finish.

    Raises: WorkerFailed.
    """
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    assert current is not None, "runs in a task"
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, current.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await keep_working(app, session)


async def keep_working(app: App, session: SessionOptions) -> None:
    """Run jobs until cancelled; if the database goes away, as in a failover, try it for `RECONNECT_MAX_S` seconds.

    Raises: WorkerFailed.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "runs in a task"
    lost_at_s: float | None = None
    while True:
        if await _work_until_lost(app, listens=session.sends_startup):
            lost_at_s = None
        if task.cancelling():
            return  # Procrastinate may end without an error when it is cancelled while it starts.
        if lost_at_s is None:
            lost_at_s = loop.time()
            _log.warning("worker_lost_database", tried_for_s=RECONNECT_MAX_S)
        elif loop.time() - lost_at_s >= RECONNECT_MAX_S:
            raise WorkerFailed(f"the database has not answered for {RECONNECT_MAX_S} seconds")
        await asyncio.sleep(_RECONNECT_PAUSE_S)


async def _work_until_lost(app: App, *, listens: bool) -> bool:
    """Run jobs until the connection is lost; return whether there was one."""
    was_open = False
    # Procrastinate also stops without an error if its connection fails.
    with contextlib.suppress(ConnectorException, PoolTimeout):
        try:
            async with app.open_async():
                was_open = True
                await app.run_worker_async(
                    concurrency=CONCURRENCY,
                    install_signal_handlers=False,
                    listen_notify=listens,
                    shutdown_graceful_timeout=GRACE_S,
                    update_heartbeat_interval=_HEARTBEAT_S,
                    stalled_worker_timeout=_STALLED_AFTER_S,
                )
        finally:
            await app.close_async()  # A pool that was not filled is there all the same.
    return was_open


def _add_housekeeping(app: App) -> None:
    async def remove_old_jobs(jobs: JobManager) -> None:
        """Delete jobs that ended more than a week ago, except failed ones, which a person should see."""
        await jobs.delete_old_jobs(nb_hours=KEPT_DAYS * 24, include_cancelled=True, include_aborted=True)

    add_periodic(app, app.job_manager, "remove_old_jobs", "17 3 * * *", remove_old_jobs)

    @app.periodic(cron="* * * * *")
    @app.task(name="retry_stalled_jobs", queueing_lock="retry_stalled_jobs", pass_context=True)
    async def retry_stalled_jobs(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        """Requeue the jobs of dead workers."""
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_STALLED_AFTER_S):
            if job.id != context.job.id:
                await app.job_manager.retry_job(job)
