"""The connection pool: how it fails, and how it recovers once its server is back."""

import asyncio
import os
import signal
import time

import psycopg
import pytest
from structlog.testing import capture_logs
from support.database.notes_table import break_database, terminate_connections
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres import releases as postgres_releases
from soundmark.kit.postgres.database import Database


async def test_a_missing_database_is_unavailable_within_seconds() -> None:
    database = Database(Secret("postgresql://nobody@127.0.0.1:9/nowhere"), pool_size=2, application_name="kit-test")
    started_s = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        await database.open()
    with pytest.raises(DatabaseUnavailable):
        await database.dedicated_connection()
    assert time.monotonic() - started_s < 40


async def test_an_outdated_server_is_logged_once(
    kit_url: Secret, superuser: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And again only if it is replaced by another release that is outdated too."""
    with psycopg.connect(kit_url.reveal()) as connection:
        version = connection.info.server_version
    monkeypatch.setattr(postgres_releases, "KNOWN_GOOD", {version // 10_000: version + 1})
    database = Database(kit_url, pool_size=2, application_name="kit-test")
    with capture_logs() as logged:
        await database.open()
        await terminate_connections(superuser)
        assert await database.is_ready()

    lines = [line["detail"] for line in logged if line["event"] == "postgres_outdated"]
    assert lines == [postgres_releases.find_warning(version)]
    assert lines[0] is not None
    await database.close()


async def test_a_full_pool_is_unavailable_and_recovers(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    release = asyncio.Event()
    held: list[int] = []

    async def hold() -> None:
        async with db.transaction() as tx:
            held.append(await tx.value("SELECT 1"))
            await release.wait()

    holders = [asyncio.create_task(hold()) for _ in range(3)]
    async with asyncio.timeout(60):
        while len(held) < 3:  # noqa: ASYNC110 - the pool grows in its own time
            await asyncio.sleep(0.005)
    with monkeypatch.context() as impatient:
        impatient.setattr(db._pool, "timeout", 0.1)
        assert not await db.is_ready()
    release.set()
    await asyncio.gather(*holders)
    assert await db.is_ready()


async def test_a_transaction_cancelled_before_it_began_gives_its_connection_back(kit_url: Secret) -> None:
    """A probe gives up on a server that hangs. Every connection that it lost would be lost for good."""
    database = Database(kit_url, pool_size=1, application_name="kit-test")
    await database.open()
    async with database.transaction() as tx:
        pid = await tx.value("SELECT pg_backend_pid()")
    os.kill(pid, signal.SIGSTOP)
    asking = asyncio.create_task(database.is_ready())
    for _ in range(50):  # Far more turns than sending BEGIN takes.
        await asyncio.sleep(0)
    asking.cancel()
    os.kill(pid, signal.SIGCONT)
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await database.is_ready()
    await database.close()


@pytest.mark.parametrize("moment", ["BEGIN", "COMMIT"])
async def test_a_cancelled_caller_leaves_no_transaction_in_the_pool(
    kit_url: Secret, moment: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Some stops of a serving process used to end with the pool's warning `rolling back returned connection`."""
    database = Database(kit_url, pool_size=1, application_name="kit-test")
    await database.open()
    async with database.transaction() as tx:
        pid = await tx.value("SELECT pg_backend_pid()")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def command() -> None:
        async with database.transaction() as tx:
            await tx.value("SELECT 1")
            begun.set()
            await go_on.wait()

    if moment == "BEGIN":
        os.kill(pid, signal.SIGSTOP)
        task = asyncio.create_task(command())
    else:
        task = asyncio.create_task(command())
        await begun.wait()
        os.kill(pid, signal.SIGSTOP)
        go_on.set()
    for _ in range(50):  # Far more turns than sending a statement takes.
        await asyncio.sleep(0)
    task.cancel()
    os.kill(pid, signal.SIGCONT)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.is_ready()
    await database.close()
    assert [record.message for record in caplog.records if record.name == "psycopg.pool"] == []


async def test_connections_that_died_unseen_are_replaced_without_an_error(db: Database, superuser: Rival) -> None:
    """After a restart of the server the pool holds dead connections without knowing it."""

    async def read() -> int:
        async with db.transaction() as tx:
            return int(await tx.value("SELECT 1"))

    await asyncio.gather(*(read() for _ in range(10)))
    await terminate_connections(superuser)
    assert await asyncio.gather(*(read() for _ in range(10))) == [1] * 10


async def test_the_pool_finds_its_database_again_soon_after_an_outage(db: Database, superuser: Rival) -> None:
    """However long the outage was: by default the pool's pauses double, and become as long as the outage."""
    async with break_database(superuser):
        started_s = time.monotonic()
        while time.monotonic() - started_s < 8:
            assert not await db.is_ready()
    assert await db.is_ready()


async def test_a_dedicated_connection_is_outside_the_pool(db: Database) -> None:
    connections = [await db.dedicated_connection() for _ in range(4)]
    assert await db.is_ready()
    for connection in connections:
        assert connection.autocommit
        await connection.close()
