"""`soundmark work audience` as its own process: it deletes aged events and needs no key."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from support.audience.aged_events import list_kept_days, make_aged_events
from support.audience.client import MASTER_KEY, AudienceIntegration, audience_settings, running_audience
from support.database.rival import Rival
from support.processes.command_server import find_forked_soundmark

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate

from .conftest import environ

DATABASE = "audience_of_work"
END_S = 60


@pytest.fixture
def url(cluster: RunningCluster) -> Secret:
    """The URL of a database of its own."""
    made = cluster.create_role_and_database(DATABASE)
    migrate(made, "soundmark.audience")
    return made


@pytest.fixture
def rival(url: Secret, cluster: RunningCluster) -> Rival:
    """A second connection, which alters rows and holds locks."""
    assert url is not None, "the tables are there"
    return Rival(cluster.superuser_url_of(DATABASE))


@pytest.fixture
async def given(url: Secret) -> AsyncIterator[AudienceIntegration]:
    """An integration that keeps two days."""
    async with running_audience(audience_settings(url)) as api:
        yield await api.make_integration(retention_days=2)


@contextlib.asynccontextmanager
async def working(url: Secret, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    settings = {"AUDIENCE_DATABASE_URL": url.reveal(), "LOG_FORMAT": "json"}
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            find_forked_soundmark(), "work", "audience", env=environ(settings), stdout=output, stderr=output
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await asyncio.wait_for(process.wait(), END_S)


async def defer(rival: Rival) -> None:
    """Defer the job as its daily schedule would."""
    await rival.run(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)"
        """ VALUES ('default', 'forget_aged', 'forget_aged', 'forget_aged', '{"timestamp": 0}')"""
    )


async def until_done(rival: Rival, process: asyncio.subprocess.Process) -> None:
    undone = "SELECT FROM procrastinate_jobs WHERE task_name = 'forget_aged' AND status IN ('todo', 'doing')"
    async with asyncio.timeout(END_S):
        while await rival.rows(undone):
            assert process.returncode is None, "it works on"
            await asyncio.sleep(0.05)


async def test_a_worker_forgets_what_has_aged(
    url: Secret, rival: Rival, given: AudienceIntegration, tmp_path: Path
) -> None:
    today = datetime.now(UTC).date()
    await make_aged_events(rival, given, {today - timedelta(days=9): 3, today: 2})
    await defer(rival)
    log = tmp_path / "log"
    async with working(url, log) as process:
        await until_done(rival, process)
    assert process.returncode == 0
    for table in ("events", "event_ids", "spent_proofs"):
        assert await list_kept_days(rival, given, table) == [today]
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    pushed = [
        line for line in logged if line["event"] == "retention"
    ]  # Also those of the run that the schedule itself defers.
    tables = ("events", "event_ids", "spent_proofs", "integrity_days")
    assert [sum(line[table] for line in pushed) for table in tables] == [3, 3, 3, 1]
    assert MASTER_KEY not in log.read_text()


async def test_a_failed_run_is_repeated_the_same_night(
    url: Secret, rival: Rival, given: AudienceIntegration, tmp_path: Path
) -> None:
    """Aged events must not wait another day because a database was restarted in the middle."""
    today = datetime.now(UTC).date()
    await make_aged_events(rival, given, {today - timedelta(days=9): 3})
    await defer(rival)
    async with working(url, tmp_path / "log") as process:
        async with rival.holding("SELECT FROM spent_proofs FOR UPDATE"):
            await rival.until_someone_waits()
            await rival.kill_waiting_sessions()
        await until_done(rival, process)
    assert await list_kept_days(rival, given, "spent_proofs") == []


async def test_a_failed_run_gives_way_to_the_one_that_waits(
    url: Secret, rival: Rival, given: AudienceIntegration, tmp_path: Path
) -> None:
    """The next run is deferred while one is under way; the failure of the first must not block it."""
    today = datetime.now(UTC).date()
    await make_aged_events(rival, given, {today - timedelta(days=9): 3})
    await defer(rival)
    async with working(url, tmp_path / "log") as process:
        async with rival.holding("SELECT FROM spent_proofs FOR UPDATE"):
            await rival.until_someone_waits()
            with contextlib.suppress(psycopg.errors.UniqueViolation):  # Unless the worker has already deferred its own.
                await defer(rival)
            await rival.kill_waiting_sessions()
        await until_done(rival, process)
    assert await list_kept_days(rival, given, "spent_proofs") == []
    last = "SELECT status FROM procrastinate_jobs WHERE task_name = 'forget_aged' ORDER BY id DESC LIMIT 2"
    assert await rival.rows(last) == [("succeeded",), ("aborted",)]
