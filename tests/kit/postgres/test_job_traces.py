"""The trace of a job: stored with it by the transaction that defers it, and continued by the worker."""

from collections.abc import AsyncIterator

import pytest
import structlog
from procrastinate import App, JobContext
from support.database.rival import Rival

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.job_queue import Queue
from soundmark.kit.postgres.jobs import UNTIL_DONE, add_deferred, jobs_app
from soundmark.kit.tracing.context import TraceContext, add_trace_id, begin_trace, current
from soundmark.kit.tracing.spans import Place

TRACE = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", 1, "congo=t61rcWkgMzE")


@pytest.fixture
async def app(database_url: Secret, rival: Rival) -> AsyncIterator[App]:
    """The queue of jobs, open."""
    await rival.run("TRUNCATE procrastinate_workers CASCADE")
    async with jobs_app(database_url, application_name="tests").open_async() as opened:
        yield opened


async def defer_in(trace: TraceContext | None, database_url: Secret) -> None:
    db = Database(database_url, pool_size=2, application_name="tests")
    await db.open()
    token = current.set(trace)
    async with db.transaction() as tx:
        await Queue().defer(tx, "act", lock="one", organization_id="org_1")
    current.reset(token)
    await db.close()


async def run_once(app: App) -> None:
    await app.run_worker_async(wait=False, install_signal_handlers=False)


async def test_a_job_continues_the_trace_that_it_was_deferred_in(app: App, database_url: Secret, rival: Rival) -> None:
    seen: list[TraceContext | None] = []

    async def act(_ctx: None, *, organization_id: str) -> None:
        assert organization_id == "org_1"
        seen.append(current.get())

    add_deferred(app, None, "act", act)
    await defer_in(TRACE, database_url)
    stored = {"traceparent": TRACE.traceparent, "tracestate": TRACE.state, "organization_id": "org_1"}
    assert await rival.rows("SELECT args FROM procrastinate_jobs WHERE task_name = 'act'") == [(stored,)]
    await run_once(app)
    assert seen == [TRACE]


async def test_a_job_that_was_deferred_outside_of_a_trace_begins_one(app: App, database_url: Secret) -> None:
    """As every periodic job does: what its run logs belongs together."""
    seen: list[TraceContext | None] = []

    async def act(_ctx: None, *, organization_id: str) -> None:
        seen.append(current.get() if organization_id else None)

    add_deferred(app, None, "act", act)
    for _ in range(2):
        await defer_in(None, database_url)
        await run_once(app)
    first, second = seen
    assert first is not None
    assert second is not None
    assert first.trace_id != second.trace_id


async def test_the_line_of_a_failed_job_has_the_id_of_its_trace(app: App, database_url: Secret) -> None:
    @app.task(name="act", retry=UNTIL_DONE, pass_context=True)
    async def act(_context: JobContext, organization_id: str) -> None:
        raise LookupError(organization_id)

    await defer_in(TRACE, database_url)
    with structlog.testing.capture_logs(processors=[add_trace_id]) as logged, Place(begin_trace(SystemEntropy())):
        await run_once(app)
    assert [line["trace_id"] for line in logged if line["event"] == "job_failed"] == [TRACE.trace_id]
