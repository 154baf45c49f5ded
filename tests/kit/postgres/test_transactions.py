"""A transaction: what it commits, what it leaves behind, and what it sees."""

import asyncio
import contextlib

import psycopg
import pytest
from support.database.notes_table import Note, read_notes, terminate_connections, write_note
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.private_call import PrivateChannel, PrivateComponent, PrivateRequest
from soundmark.kit.http.requests.private_endpoint import PrivateEndpoint
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.open_transaction import assert_no_transaction
from soundmark.kit.postgres.database import Database


async def test_a_transaction_commits_when_its_block_ends(db: Database, kit_rival: Rival) -> None:
    async with db.transaction() as tx:
        await write_note(tx, "one")
        assert await read_notes(kit_rival) == [], "nobody sees it before"
    assert await read_notes(kit_rival) == ["one"]


async def test_announcements_of_a_transaction_are_delivered_once_when_it_ends(db: Database) -> None:
    async with db.transaction() as tx:
        tx.announce("one")
        tx.announce("one")
        assert db.take_announced() == set()
    with contextlib.suppress(LookupError):
        async with db.transaction() as tx:
            tx.announce("two")
            raise LookupError
    assert [db.take_announced(), db.take_announced()] == [{"one", "two"}, set()]


async def test_a_transaction_that_raises_leaves_nothing(db: Database, kit_rival: Rival) -> None:
    async def command() -> None:
        async with db.transaction() as tx:
            await write_note(tx, "one")
            raise LookupError

    with pytest.raises(LookupError):
        await command()
    assert await read_notes(kit_rival) == []


async def test_a_transaction_that_is_cancelled_leaves_nothing(db: Database, kit_rival: Rival) -> None:
    written = asyncio.Event()

    async def command() -> None:
        async with db.transaction() as tx:
            await write_note(tx, "one")
            written.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(command())
    await written.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await read_notes(kit_rival) == []


async def test_a_transaction_cancelled_while_it_waits_leaves_nothing(db: Database, kit_rival: Rival) -> None:
    """The waiting statement is cancelled in the server too, and with it the request for the lock."""

    async def command() -> None:
        async with db.transaction() as tx:
            await write_note(tx, "two")
            await write_note(tx, "one")

    async with kit_rival.holding("INSERT INTO notes (text) VALUES ('one')"):
        task = asyncio.create_task(command())
        await kit_rival.until_someone_waits()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await read_notes(kit_rival) == []
    async with db.transaction() as tx:
        await write_note(tx, "two")


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


async def test_transactions_of_different_tasks_are_independent(db: Database) -> None:
    async def read() -> int:
        async with db.transaction() as tx:
            return int(await tx.value("SELECT 1"))

    assert await asyncio.gather(*(read() for _ in range(20))) == [1] * 20


async def test_a_private_call_is_never_made_inside_a_transaction(db: Database) -> None:
    """Locks must not be held while another component works."""
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


async def test_an_error_does_not_repeat_the_values_of_a_row(db: Database) -> None:
    """PostgreSQL reports the whole key that already existed, and an unexpected error is logged."""

    async def write_twice() -> None:
        async with db.transaction() as tx:
            await tx.run("CREATE TEMPORARY TABLE tokens (token text CONSTRAINT tokens_once UNIQUE) ON COMMIT DROP")
            for _ in range(2):
                await tx.run("INSERT INTO tokens VALUES ('brd_secret')")

    with pytest.raises(psycopg.errors.UniqueViolation) as raised:
        await write_twice()
    assert str(raised.value) == "SQLSTATE 23505 at tokens_once"
    assert raised.value.diag.constraint_name == "tokens_once"


async def test_a_snapshot_cannot_write(db: Database, kit_rival: Rival) -> None:
    """A write there is our own mistake, which no other server would accept."""
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        async with db.snapshot() as tx:
            await write_note(tx, "one")
    assert await read_notes(kit_rival) == []


async def test_a_snapshot_sees_one_moment(db: Database, kit_rival: Rival) -> None:
    async with db.snapshot() as tx:
        assert await tx.value("SELECT count(*) FROM notes") == 0
        await kit_rival.run("INSERT INTO notes (text) VALUES ('one')")
        assert await tx.value("SELECT count(*) FROM notes") == 0


async def test_two_connections_share_a_snapshot(db: Database, kit_rival: Rival) -> None:
    """The second begins later, sees what the first sees, and cannot write either."""
    async with db.snapshot() as tx:
        assert await tx.value("SELECT count(*) FROM notes") == 0
        await kit_rival.run("INSERT INTO notes (text) VALUES ('one')")
        async with db.beside(tx) as second:
            pids = [await each.value("SELECT pg_backend_pid()") for each in (tx, second)]
            assert await second.value("SELECT count(*) FROM notes") == 0
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                await write_note(second, "two")
        assert len(set(pids)) == 2
        assert await tx.value("SELECT count(*) FROM notes") == 0
    assert await read_notes(kit_rival) == ["one"]


async def test_a_transaction_sees_what_was_committed_meanwhile(db: Database, kit_rival: Rival) -> None:
    async with db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM notes") == 0
        await kit_rival.run("INSERT INTO notes (text) VALUES ('one')")
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
    """Without bounds, a forgotten statement or transaction would hold its locks for ever. Times are UTC."""
    async with db.transaction() as tx:
        names = ("statement_timeout", "idle_in_transaction_session_timeout", "TimeZone", "synchronous_commit")
        values = [await tx.value("SELECT current_setting(%(name)s)", {"name": name}) for name in names]
    assert values == ["30s", "30s", "UTC", "on"]


async def test_a_transaction_may_be_given_more_time(db: Database) -> None:
    """The next user of the connection does not get it."""
    for given, expected in ((600, "10min"), (None, "30s")) * 2:
        async with db.transaction(statement_timeout_s=given) as tx:
            assert await tx.value("SELECT current_setting('statement_timeout')") == expected


async def test_a_statement_that_takes_too_long_means_the_database_is_unavailable(db: Database) -> None:
    async def command() -> None:
        async with db.transaction() as tx:
            await tx.run("SET LOCAL statement_timeout = '20ms'")
            await tx.run("SELECT pg_sleep(10)")

    with pytest.raises(DatabaseUnavailable, match="in time"):
        await command()
    assert await db.is_ready()


async def test_a_transaction_whose_server_dies_is_unavailable_and_leaves_nothing(
    db: Database, superuser: Rival, kit_rival: Rival
) -> None:
    async def command() -> None:
        async with db.transaction() as tx:
            await write_note(tx, "one")
            await terminate_connections(superuser)
            await write_note(tx, "two")

    with pytest.raises(DatabaseUnavailable):
        await command()
    assert await read_notes(kit_rival) == []
    assert await db.is_ready()


async def test_a_commit_that_is_not_confirmed_is_unavailable(db: Database, superuser: Rival, kit_rival: Rival) -> None:
    async def command() -> None:
        async with db.transaction() as tx:
            await write_note(tx, "one")
            await terminate_connections(superuser)

    with pytest.raises(DatabaseUnavailable):
        await command()
    assert await read_notes(kit_rival) == []
