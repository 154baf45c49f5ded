"""One visible transaction for a command, and a pool that outlives its server."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import psycopg
import pytest
from support.rival import Rival

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.private_call import PrivateChannel, PrivateComponent, PrivateRequest
from soundmark.kit.http.private_endpoint import PrivateEndpoint
from soundmark.kit.http.problems import DatabaseUnavailable
from soundmark.kit.postgres import releases as postgres_releases
from soundmark.kit.postgres.database import Database, assert_no_transaction
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True)
class Note:
    text: str


@pytest.fixture
def rival(kit_url: Secret) -> Rival:
    return Rival(kit_url)


@pytest.fixture
def superuser(cluster: RunningCluster) -> Rival:
    return Rival(cluster.superuser_url)


async def write(tx: Tx, text: str) -> None:
    await tx.run("INSERT INTO notes (text) VALUES (%(text)s)", {"text": text})


async def notes(rival: Rival) -> list[str]:
    return [text for (text,) in await rival.rows("SELECT text FROM notes ORDER BY text")]


async def terminate_all(superuser: Rival) -> None:
    """End every connection to the database; they are gone when this returns."""
    await superuser.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'kit_under_test'")


@contextlib.asynccontextmanager
async def outage(superuser: Rival) -> AsyncIterator[None]:
    """The database takes no connection and has none."""
    await superuser.run("ALTER DATABASE kit_under_test ALLOW_CONNECTIONS false")
    try:
        await terminate_all(superuser)
        yield
    finally:
        await superuser.run("ALTER DATABASE kit_under_test ALLOW_CONNECTIONS true")


async def test_a_transaction_commits_when_its_block_ends(db: Database, rival: Rival) -> None:
    async with db.transaction() as tx:
        await write(tx, "one")
        assert await notes(rival) == [], "nobody sees it before"
    assert await notes(rival) == ["one"]


async def test_what_a_transaction_announces_is_told_once_when_it_is_over(db: Database) -> None:
    async with db.transaction() as tx:
        tx.announce("one")
        tx.announce("one")
        assert db.take_announced() == set()
    with contextlib.suppress(LookupError):
        async with db.transaction() as tx:
            tx.announce("two")
            raise LookupError
    assert [db.take_announced(), db.take_announced()] == [{"one", "two"}, set()]


async def test_a_transaction_that_raises_leaves_nothing(db: Database, rival: Rival) -> None:
    async def command() -> None:
        async with db.transaction() as tx:
            await write(tx, "one")
            raise LookupError

    with pytest.raises(LookupError):
        await command()
    assert await notes(rival) == []


async def test_a_transaction_that_is_cancelled_leaves_nothing(db: Database, rival: Rival) -> None:
    written = asyncio.Event()

    async def command() -> None:
        async with db.transaction() as tx:
            await write(tx, "one")
            written.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(command())
    await written.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await notes(rival) == []


async def test_a_transaction_cancelled_while_it_waits_leaves_nothing(db: Database, rival: Rival) -> None:
    """The statement that waits is cancelled in the server too, and its lock request with it."""

    async def command() -> None:
        async with db.transaction() as tx:
            await write(tx, "two")
            await write(tx, "one")

    async with rival.holding("INSERT INTO notes (text) VALUES ('one')"):
        task = asyncio.create_task(command())
        await rival.until_someone_waits()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await notes(rival) == []
    async with db.transaction() as tx:
        await write(tx, "two")


async def test_a_transaction_is_never_nested(db: Database) -> None:
    async with db.transaction():
        with pytest.raises(AssertionError, match="a transaction inside a transaction"):
            async with db.transaction():
                pass
        with pytest.raises(AssertionError, match="a transaction inside a transaction"):
            async with db.snapshot():
                pass


async def test_a_helper_task_of_a_transaction_cannot_open_another(db: Database) -> None:
    """It would wait for a connection that its parent holds."""
    async with db.transaction():
        assert await asyncio.gather(db.is_ready(), return_exceptions=True) != [True]


async def test_transactions_of_different_tasks_do_not_know_each_other(db: Database) -> None:
    async def read() -> int:
        async with db.transaction() as tx:
            return int(await tx.value("SELECT 1"))

    assert await asyncio.gather(*(read() for _ in range(20))) == [1] * 20


async def test_a_private_call_is_never_made_inside_a_transaction(db: Database) -> None:
    """The other component's time must not be our locks' time."""
    component = PrivateComponent("thing", "http://127.0.0.1:9", Secret("c" * 16), DatabaseUnavailable)
    channel = PrivateChannel(component, caller="soundmark-test", timeout_s=1, bytes_max=1024)
    async with db.transaction():
        with pytest.raises(AssertionError, match="a private call inside a transaction"):
            await channel.fetch(PrivateEndpoint("GET", "/", bytes), PrivateRequest(request_id="r"))
    await channel.aclose()


async def test_the_guard_is_gone_after_a_failure(db: Database) -> None:
    with contextlib.suppress(LookupError):
        async with db.transaction():
            raise LookupError
    assert_no_transaction("anything")
    async with db.transaction() as tx:
        assert await tx.value("SELECT 1") == 1


async def test_an_error_does_not_repeat_what_a_row_held(db: Database) -> None:
    """PostgreSQL tells the whole key that was there already, and an unexpected error is logged."""

    async def write_twice() -> None:
        async with db.transaction() as tx:
            await tx.run("CREATE TEMPORARY TABLE tokens (token text CONSTRAINT tokens_once UNIQUE) ON COMMIT DROP")
            for _ in range(2):
                await tx.run("INSERT INTO tokens VALUES ('brd_secret')")

    with pytest.raises(psycopg.errors.UniqueViolation) as raised:
        await write_twice()
    assert str(raised.value) == "SQLSTATE 23505 at tokens_once"
    assert raised.value.diag.constraint_name == "tokens_once"


async def test_a_snapshot_cannot_write(db: Database, rival: Rival) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        async with db.snapshot() as tx:
            await write(tx, "one")
    assert await notes(rival) == []


async def test_a_snapshot_sees_one_moment(db: Database, rival: Rival) -> None:
    async with db.snapshot() as tx:
        assert await tx.value("SELECT count(*) FROM notes") == 0
        await rival.run("INSERT INTO notes (text) VALUES ('one')")
        assert await tx.value("SELECT count(*) FROM notes") == 0


async def test_two_connections_share_a_snapshot(db: Database, rival: Rival) -> None:
    """The second begins later, sees what the first sees, and cannot write either."""
    async with db.snapshot() as tx:
        assert await tx.value("SELECT count(*) FROM notes") == 0
        await rival.run("INSERT INTO notes (text) VALUES ('one')")
        async with db.beside(tx) as second:
            pids = [await each.value("SELECT pg_backend_pid()") for each in (tx, second)]
            assert await second.value("SELECT count(*) FROM notes") == 0
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                await write(second, "two")
        assert len(set(pids)) == 2
        assert await tx.value("SELECT count(*) FROM notes") == 0
    assert await notes(rival) == ["one"]


async def test_a_transaction_sees_what_was_committed_meanwhile(db: Database, rival: Rival) -> None:
    async with db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM notes") == 0
        await rival.run("INSERT INTO notes (text) VALUES ('one')")
        assert await tx.value("SELECT count(*) FROM notes") == 1


async def test_rows_become_records(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.run_many("INSERT INTO notes (text) VALUES (%(text)s)", [{"text": "a"}, {"text": "b"}])
        assert await tx.all(Note, "SELECT text FROM notes ORDER BY text") == [Note("a"), Note("b")]
        one = "SELECT text FROM notes WHERE text = %(text)s"
        assert await tx.one_or_none(Note, one, {"text": "a"}) == Note("a")
        assert await tx.one_or_none(Note, one, {"text": "c"}) is None
        assert await tx.value("SELECT text FROM notes WHERE text = 'c'") is None
        assert await tx.run("UPDATE notes SET text = text || '2'") == 2
        with pytest.raises(AssertionError):
            await tx.one_or_none(Note, "SELECT text FROM notes")


async def test_connections_carry_our_bounds(db: Database) -> None:
    """A statement or an idle transaction that nobody ends would hold its locks for ever; times are UTC."""
    async with db.transaction() as tx:
        names = ("statement_timeout", "idle_in_transaction_session_timeout", "TimeZone", "synchronous_commit")
        values = [await tx.value("SELECT current_setting(%(name)s)", {"name": name}) for name in names]
    assert values == ["30s", "30s", "UTC", "on"]


async def test_a_transaction_may_be_given_more_time(db: Database) -> None:
    """And whoever gets its connection next is not."""
    for given, told in ((600, "10min"), (None, "30s")) * 2:
        async with db.transaction(statement_timeout_s=given) as tx:
            assert await tx.value("SELECT current_setting('statement_timeout')") == told


async def test_a_statement_that_takes_too_long_is_the_databases_failure(db: Database) -> None:
    async def command() -> None:
        async with db.transaction() as tx:
            await tx.run("SET LOCAL statement_timeout = '20ms'")
            await tx.run("SELECT pg_sleep(10)")

    with pytest.raises(DatabaseUnavailable, match="in time"):
        await command()
    assert await db.is_ready()


async def test_a_database_that_is_not_there_is_unavailable_within_seconds() -> None:
    database = Database(Secret("postgresql://nobody@127.0.0.1:9/nowhere"), pool_size=2, application_name="kit-test")
    started_s = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        await database.open()
    with pytest.raises(DatabaseUnavailable):
        await database.dedicated_connection()
    assert time.monotonic() - started_s < 40


async def test_a_server_that_is_too_old_is_known_from_its_first_connection_on(
    kit_url: Secret, superuser: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no longer once it was upgraded, which ends every connection."""
    database = Database(kit_url, pool_size=2, application_name="kit-test")
    assert database.find_warning() is None, "nothing is known yet"
    await database.open()
    with psycopg.connect(kit_url.reveal()) as connection:
        version = connection.info.server_version
    monkeypatch.setattr(postgres_releases, "KNOWN_GOOD", {version // 10_000: version + 1})
    assert database.find_warning() == postgres_releases.find_warning(version) is not None
    monkeypatch.setattr(database, "_server_version", version - 1)
    monkeypatch.setattr(postgres_releases, "KNOWN_GOOD", {version // 10_000: version})
    assert database.find_warning() is not None
    await terminate_all(superuser)
    assert await database.is_ready()
    assert database.find_warning() is None
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
    """A probe gives up on a server that hangs. Every connection lost that way would be lost for good."""
    database = Database(kit_url, pool_size=1, application_name="kit-test")
    await database.open()
    async with database.transaction() as tx:
        pid = await tx.value("SELECT pg_backend_pid()")
    os.kill(pid, signal.SIGSTOP)
    asking = asyncio.create_task(database.is_ready())
    for _ in range(50):  # Far more turns than it takes to send BEGIN.
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
    """Some stops of a serving process ended with the pool's warning `rolling back returned connection`."""
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
    for _ in range(50):  # Far more turns than it takes to send a statement.
        await asyncio.sleep(0)
    task.cancel()
    os.kill(pid, signal.SIGCONT)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.is_ready()
    await database.close()
    assert [record.message for record in caplog.records if record.name == "psycopg.pool"] == []


async def test_connections_that_died_unseen_are_replaced_without_an_error(db: Database, superuser: Rival) -> None:
    """After a restart of the server the pool holds connections that are dead and do not know it."""

    async def read() -> int:
        async with db.transaction() as tx:
            return int(await tx.value("SELECT 1"))

    await asyncio.gather(*(read() for _ in range(10)))
    await terminate_all(superuser)
    assert await asyncio.gather(*(read() for _ in range(10))) == [1] * 10


async def test_a_statement_of_its_own_answers_one_row_or_none(db: Database, rival: Rival) -> None:
    assert await db.one_or_none(Note, "SELECT text FROM notes WHERE text = %(text)s", {"text": "one"}) is None
    await rival.run("INSERT INTO notes (text) VALUES ('one')")
    assert await db.one_or_none(Note, "SELECT text FROM notes WHERE text = %(text)s", {"text": "one"}) == Note("one")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        await db.one_or_none(Note, "SELECT nothing FROM notes")
    assert await db.one_or_none(Note, "SELECT text FROM notes") == Note("one"), "the connection is as good as before"


async def test_a_statement_of_its_own_is_never_asked_inside_a_transaction(db: Database) -> None:
    """It would not see what the transaction wrote."""
    async with db.transaction():
        with pytest.raises(AssertionError):
            await db.one_or_none(Note, "SELECT text FROM notes")


async def test_a_statement_of_its_own_outlives_its_connections(db: Database, superuser: Rival) -> None:
    async def read() -> Note | None:
        return await db.one_or_none(Note, "SELECT 'one' AS text")

    await asyncio.gather(*(read() for _ in range(10)))
    await terminate_all(superuser)
    assert await asyncio.gather(*(read() for _ in range(10))) == [Note("one")] * 10
    async with outage(superuser):
        with pytest.raises(DatabaseUnavailable):
            await read()
    assert await read() == Note("one")


async def test_a_statement_of_its_own_that_is_cut_is_the_databases_failure(db: Database, superuser: Rival) -> None:
    sleeping = asyncio.create_task(db.one_or_none(Note, "SELECT pg_sleep(10)::text AS text"))
    cut = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    while not await superuser.rows(cut):  # noqa: ASYNC110 - the event happens in PostgreSQL
        await asyncio.sleep(0.005)
    with pytest.raises(DatabaseUnavailable, match="in time"):
        await sleeping
    assert await db.is_ready()


async def test_a_transaction_whose_server_dies_is_unavailable_and_leaves_nothing(
    db: Database, superuser: Rival, rival: Rival
) -> None:
    async def command() -> None:
        async with db.transaction() as tx:
            await write(tx, "one")
            await terminate_all(superuser)
            await write(tx, "two")

    with pytest.raises(DatabaseUnavailable):
        await command()
    assert await notes(rival) == []
    assert await db.is_ready()


async def test_a_commit_that_is_not_confirmed_is_unavailable(db: Database, superuser: Rival, rival: Rival) -> None:
    async def command() -> None:
        async with db.transaction() as tx:
            await write(tx, "one")
            await terminate_all(superuser)

    with pytest.raises(DatabaseUnavailable):
        await command()
    assert await notes(rival) == []


async def test_the_pool_finds_its_database_again_soon_after_an_outage(db: Database, superuser: Rival) -> None:
    """However long it was gone: left alone, the pool's pauses double, and grow as long as the outage was."""
    async with outage(superuser):
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
