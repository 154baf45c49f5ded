"""Jobs that are deferred in a transaction, and run until they report that they are done."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from procrastinate import App
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.job_queue import Later, Queue
from soundmark.kit.postgres.jobs import UNTIL_DONE, jobs_app

JOBS = "SELECT task_name, status::text, args, lock FROM procrastinate_jobs WHERE task_name IN ('act', 'other')"


@pytest.fixture
async def app(database_url: Secret, rival: Rival) -> AsyncIterator[App]:
    """The queue of jobs, open."""
    await rival.run("TRUNCATE procrastinate_workers CASCADE")
    async with jobs_app(database_url, application_name="tests").open_async() as opened:
        yield opened


@pytest.fixture
async def db(database_url: Secret) -> AsyncIterator[Database]:
    """An open database with a pool of its own."""
    database = Database(database_url, pool_size=2, application_name="tests")
    await database.open()
    yield database
    await database.close()


async def run_once(app: App) -> None:
    await app.run_worker_async(wait=False, install_signal_handlers=False)


async def test_a_job_appears_with_the_commit(app: App, db: Database, rival: Rival) -> None:
    assert app is not None, "the queue is empty"
    async with db.transaction() as tx:
        await Queue().defer(tx, "act", lock="one", organization_id="org_1")
        assert await rival.rows(JOBS) == []
    assert await rival.rows(JOBS) == [("act", "todo", {"organization_id": "org_1"}, "one")]


async def test_a_job_of_a_failed_transaction_never_appears(app: App, db: Database, rival: Rival) -> None:
    assert app is not None, "the queue is empty"

    async def failing() -> None:
        async with db.transaction() as tx:
            await Queue().defer(tx, "act", lock="one")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert await rival.rows(JOBS) == []


async def test_a_connection_that_breaks_while_deferring_means_the_database_is_unavailable(
    db: Database, rival: Rival
) -> None:
    async def deferring() -> None:
        async with db.transaction() as tx:
            await Queue().defer(tx, "act", lock="one")

    async with rival.holding("LOCK TABLE procrastinate_jobs IN ACCESS EXCLUSIVE MODE"):
        waiting = await rival.while_waiting(deferring())
        await rival.kill_waiting_sessions()
        with pytest.raises(DatabaseUnavailable):
            await waiting


async def defer(db: Database, task: str = "act", *, lock: str = "one", **ids: str) -> None:
    async with db.transaction() as tx:
        await Queue().defer(tx, task, lock=lock, **ids)


async def test_a_job_takes_the_place_of_an_equal_one_that_waits(app: App, db: Database, rival: Rival) -> None:
    """Otherwise, hundreds wait for their lock after an outage, and each may wait seconds for the one before."""
    assert app is not None, "the queue is empty"
    for task, lock, number in [
        ("act", "one", "1"),
        ("act", "one", "2"),
        ("act", "two", "1"),
        ("other", "one", "1"),
    ] * 2:
        await defer(db, task, lock=lock, number=number)
    assert sorted(await rival.rows("SELECT task_name, lock, args->>'number' FROM procrastinate_jobs")) == [
        ("act", "one", "1"),
        ("act", "one", "2"),
        ("act", "two", "1"),
        ("other", "one", "1"),
    ]


async def test_a_job_does_not_wait_for_the_pause_after_the_failure_of_an_equal_one(
    app: App, db: Database, rival: Rival
) -> None:
    """The pause grows to ten minutes, but a change made after the outage must arrive within two."""
    failing = True

    @app.task(name="act", retry=UNTIL_DONE)
    async def act() -> None:
        if failing:
            raise ZeroDivisionError

    await defer(db)
    await rival.run("UPDATE procrastinate_jobs SET attempts = 9")
    await run_once(app)
    failing = False
    await defer(db)
    await run_once(app)
    assert await rival.rows("SELECT status::text, attempts FROM procrastinate_jobs WHERE task_name = 'act'") == [
        ("succeeded", 1)
    ]


async def test_a_job_that_waits_stays_if_the_transaction_that_replaces_it_fails(
    app: App, db: Database, rival: Rival
) -> None:
    assert app is not None, "the queue is empty"
    await defer(db)
    before = await rival.rows("SELECT id FROM procrastinate_jobs")

    async def failing() -> None:
        async with db.transaction() as tx:
            await Queue().defer(tx, "act", lock="one")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert await rival.rows("SELECT id FROM procrastinate_jobs") == before


async def test_a_job_is_queued_beside_an_equal_one_that_just_began(app: App, db: Database, rival: Rival) -> None:
    """The one that began may have read the rows before they were changed."""
    assert app is not None, "the queue is empty"
    await defer(db)
    async with rival.committing("UPDATE procrastinate_jobs SET status = 'doing'"):
        deferring = await rival.while_waiting(defer(db))
    await deferring
    assert await statuses(rival) == ["doing", "todo"]


async def scheduled(rival: Rival) -> Any:
    ((status, attempts, at),) = await rival.rows(
        "SELECT status::text, attempts, scheduled_at FROM procrastinate_jobs WHERE task_name = 'act'"
    )
    return status, attempts, at


async def test_a_task_that_asks_for_later_is_run_then(app: App, rival: Rival) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)

    @app.task(name="act", retry=UNTIL_DONE)
    async def act() -> None:
        raise Later(at)

    await act.defer_async()
    await run_once(app)
    assert await scheduled(rival) == ("todo", 1, at)


@pytest.mark.parametrize(("attempts", "pause_s"), [(0, 5), (1, 10), (3, 40), (9, 600), (5000, 600)])
async def test_a_task_that_fails_is_run_again_after_a_bounded_pause(
    app: App, rival: Rival, capfd: pytest.CaptureFixture[str], attempts: int, pause_s: int
) -> None:
    @app.task(name="act", retry=UNTIL_DONE)
    async def act() -> None:
        raise ValueError("with ada@example.org in it")

    await act.defer_async()
    await rival.run("UPDATE procrastinate_jobs SET attempts = %s WHERE task_name = 'act'", attempts)
    before = datetime.now(UTC)
    await run_once(app)
    after = datetime.now(UTC)
    status, attempts_then, at = await scheduled(rival)
    assert (status, attempts_then) == ("todo", attempts + 1)
    # The time is recorded in whole seconds; the failure was somewhere in between.
    assert before - timedelta(seconds=1) <= at - timedelta(seconds=pause_s) <= after
    output = "".join(capfd.readouterr())
    assert "job_failed" in output
    assert "ValueError" in output
    assert "ada@" not in output


async def statuses(rival: Rival) -> list[str]:
    return [
        status
        for (status,) in await rival.rows(
            "SELECT status::text FROM procrastinate_jobs WHERE task_name IN ('act', 'other') ORDER BY id"
        )
    ]


async def test_a_task_that_fails_gives_way_to_the_one_already_waiting(app: App, rival: Rival) -> None:
    runs = 0

    @app.task(name="act", queueing_lock="act", lock="act", retry=UNTIL_DONE)
    async def act() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            await act.defer_async()
            raise ZeroDivisionError

    await act.defer_async()
    await run_once(app)
    assert await statuses(rival) == ["aborted", "succeeded"]
    assert runs == 2


async def test_a_task_of_a_dead_worker_gives_way_to_the_one_already_waiting(app: App, rival: Rival) -> None:
    """And the next task in the same round of housekeeping is still taken up."""

    @app.task(name="act", queueing_lock="act", lock="act", retry=UNTIL_DONE)
    async def act() -> None: ...

    @app.task(name="other")
    async def other() -> None: ...

    await act.defer_async()
    await other.defer_async()
    await rival.run("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')")
    await rival.run(
        "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT id FROM procrastinate_workers)"
    )
    await act.defer_async()
    await app.configure_task("retry_stalled_jobs").defer_async(timestamp=0)
    await run_once(app)
    assert await statuses(rival) == ["aborted", "succeeded", "succeeded"]


async def test_a_task_whose_worker_stops_goes_to_the_next_worker(app: App, rival: Rival) -> None:
    began = asyncio.Event()

    @app.task(name="act", retry=UNTIL_DONE)
    async def act() -> None:
        began.set()
        await asyncio.Event().wait()

    await act.defer_async()
    running = asyncio.create_task(app.run_worker_async(install_signal_handlers=False, shutdown_graceful_timeout=0.1))
    await asyncio.wait_for(began.wait(), 60)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    status, attempts, _ = await scheduled(rival)
    assert (status, attempts) == ("todo", 1)
