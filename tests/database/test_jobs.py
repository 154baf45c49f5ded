"""The queue of background jobs and the process that empties it."""

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from procrastinate import App
from procrastinate.exceptions import AlreadyEnqueued
from support.database.rival import Rival
from support.processes.command_server import find_forked_soundmark
from support.processes.up_process import clean_environ, until

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres import jobs
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.postgres.sessions import DIRECT


@pytest.fixture(scope="module")
def url(cluster: RunningCluster) -> Secret:
    """The URL of a database of its own."""
    made = cluster.create_role_and_database("jobs_under_test")
    migrate(made, "soundmark.audience")
    return made


@pytest.fixture
async def app(url: Secret) -> AsyncIterator[App]:
    """The queue of jobs, open."""
    async with jobs.jobs_app(url, application_name="tests").open_async() as opened:
        yield opened


@pytest.fixture
def connection(url: Secret) -> Iterator[psycopg.Connection]:
    """A connection that commits each statement."""
    with psycopg.connect(url.reveal(), autocommit=True) as opened:
        opened.execute("TRUNCATE procrastinate_jobs, procrastinate_workers, procrastinate_periodic_defers CASCADE")
        yield opened


def worker(url: Secret) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [find_forked_soundmark(), "work", "audience"],
        env=clean_environ({"SOUNDMARK_AUDIENCE_DATABASE_URL": url.reveal()}),
        stderr=subprocess.PIPE,
    )


def has_worker(connection: psycopg.Connection) -> bool:
    return connection.execute("SELECT 1 FROM procrastinate_workers").fetchone() is not None


async def test_old_jobs_are_forgotten_but_failed_ones_stay_for_a_person(
    app: App, connection: psycopg.Connection
) -> None:
    statuses = ["succeeded", "cancelled", "aborted", "failed", "todo"]
    for age_days in (jobs.KEPT_DAYS - 1, jobs.KEPT_DAYS + 1):
        for status in statuses:
            connection.execute(
                "WITH job AS (INSERT INTO procrastinate_jobs (queue_name, task_name, status, args)"
                " VALUES ('default', 'any', %(status)s, jsonb_build_object('age', %(age)s::int)) RETURNING id)"
                " SELECT id FROM job",
                {"status": status, "age": age_days},
            )
    connection.execute("UPDATE procrastinate_events SET at = now() - interval '30 days'")
    connection.execute(
        "INSERT INTO procrastinate_events (job_id, type, at)"
        " SELECT id, status::text::procrastinate_job_event_type, now() - make_interval(days => (args->>'age')::int)"
        "   FROM procrastinate_jobs WHERE status <> 'todo'"
    )
    await app.tasks["remove_old_jobs"](timestamp=0)
    left = connection.execute("SELECT (args->>'age')::int, status::text FROM procrastinate_jobs").fetchall()
    assert sorted(left) == sorted(
        [(jobs.KEPT_DAYS - 1, status) for status in statuses]
        + [(jobs.KEPT_DAYS + 1, status) for status in ("failed", "todo")]
    )


async def test_the_jobs_of_a_dead_worker_go_to_living_ones(app: App, connection: psycopg.Connection) -> None:
    connection.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')")
    connection.execute(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, status, worker_id)"
        " SELECT 'default', 'any', 'doing', id FROM procrastinate_workers"
    )
    await app.configure_task("retry_stalled_jobs").defer_async(timestamp=0)
    await app.run_worker_async(wait=False, install_signal_handlers=False)
    row = connection.execute("SELECT status::text FROM procrastinate_jobs WHERE task_name = 'any'").fetchone()
    # It was tried again, and failed because there is no such task.
    assert row == ("failed",)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_worker_cleanly(url: Secret, connection: psycopg.Connection, signum: signal.Signals) -> None:
    with worker(url) as process:
        until(lambda: has_worker(connection), 60)
        process.send_signal(signum)
        assert process.wait(20) == 0
    assert not has_worker(connection)


def test_a_worker_that_loses_its_database_works_again_when_it_is_back(
    url: Secret, cluster: RunningCluster, connection: psycopg.Connection
) -> None:
    """A failover takes seconds. A worker that ended at once could wait for minutes for its supervisor."""
    with worker(url) as process, psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as superuser:
        until(lambda: has_worker(connection), 60)

        def cut() -> bool:
            return not superuser.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'soundmark-audience-jobs'"
            ).fetchall()

        superuser.execute("ALTER ROLE jobs_under_test NOLOGIN")
        try:
            until(cut, 60)
        finally:
            superuser.execute("ALTER ROLE jobs_under_test LOGIN")
        connection.execute("DELETE FROM procrastinate_workers")
        until(lambda: has_worker(connection), 60)
        process.send_signal(signal.SIGTERM)
        _, output = process.communicate(timeout=30)
    assert process.returncode == 0
    assert output.count(b"worker_lost_database") == 1


async def test_a_job_whose_end_was_not_recorded_does_not_stay_with_a_worker_that_lives(
    url: Secret, app: App, connection: psycopg.Connection
) -> None:
    """The worker has forgotten the job but sends heartbeats, so nobody would take up the job, or what has its lock.

    A connection that ends at that moment leads to this, as in a failover.
    """
    rival, began, ending = Rival(url), asyncio.Event(), asyncio.Event()
    own = jobs.jobs_app(url, application_name="tests")

    @own.task(name="act", lock="act", retry=jobs.UNTIL_DONE)
    async def act() -> None:
        began.set()
        await ending.wait()

    await app.configure_task("act", lock="act").defer_async()
    working = asyncio.create_task(jobs.keep_working(own, DIRECT))
    await asyncio.wait_for(began.wait(), 60)
    async with rival.holding("SELECT FROM procrastinate_jobs WHERE task_name = 'act' FOR UPDATE"):
        ending.set()
        await rival.until_someone_waits()
        first = connection.execute("SELECT max(id) FROM procrastinate_workers").fetchone()
        await rival.kill_waiting_sessions()
    await rival.until_found("SELECT FROM procrastinate_workers WHERE id > %s", *first or ())
    with contextlib.suppress(AlreadyEnqueued):
        await app.configure_task("retry_stalled_jobs").defer_async(timestamp=0)
    await rival.until_found("SELECT FROM procrastinate_jobs WHERE task_name = 'act' AND status = 'succeeded'")
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


async def test_a_worker_without_a_database_for_too_long_says_so_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its supervisor restarts it; a worker that never ended would look alive and do nothing."""
    monkeypatch.setattr(jobs, "RECONNECT_MAX_S", 0)
    app = jobs.jobs_app(Secret("postgresql://nobody@127.0.0.1:1/nothing"), application_name="tests")
    with pytest.raises(jobs.WorkerFailed, match="has not answered"):
        await jobs.keep_working(app, DIRECT)


async def test_a_worker_ends_at_once_although_the_library_overlooks_that_it_was_cancelled(
    url: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does if that happens while it starts; the worker tried a database that had gone for another minute."""
    app, began = jobs.jobs_app(url, application_name="tests"), asyncio.Event()

    async def overlook(**_: object) -> None:
        began.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    monkeypatch.setattr(app, "run_worker_async", overlook)
    working = asyncio.create_task(jobs.keep_working(app, DIRECT))
    await asyncio.wait_for(began.wait(), 60)
    working.cancel()
    await asyncio.wait({working}, timeout=10)
    assert working.done()


@pytest.mark.parametrize("component", ["core", "audience"])
def test_a_worker_whose_database_was_never_migrated_is_refused_in_one_line(
    cluster: RunningCluster, component: str
) -> None:
    empty = cluster.create_role_and_database("never_migrated_for_jobs").reveal()
    settings = {
        "BASE_URL": "http://127.0.0.1:8080",
        "MASTER_KEY": "A" * 43,
        "AUDIENCE_URL": "http://127.0.0.1:9",
        "AUDIENCE_CREDENTIAL": "a-credential-for-nobody",
        f"{component.upper()}_DATABASE_URL": empty,
    }
    done = subprocess.run(
        [find_forked_soundmark(), "work", component],
        env=clean_environ({f"SOUNDMARK_{name}": value for name, value in settings.items()}),
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert (
        done.stderr.splitlines()[-1]
        == (
            f"soundmark: the jobs of {component} stopped: the database is not at the schema of this release: "
            f"run `soundmark migrate {component}`"
        ).encode()
    )
    assert b"Traceback" not in done.stderr


def test_a_worker_without_a_database_is_refused_in_one_line() -> None:
    with worker(Secret("postgresql://nobody@127.0.0.1:1/nothing")) as process:
        _, output = process.communicate(timeout=30)
    assert process.returncode == 1
    assert output.splitlines()[-1] == b"soundmark: the jobs of audience stopped: the database does not answer"
    assert b"Traceback" not in output
