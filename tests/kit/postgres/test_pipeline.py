"""Statements of one transaction that share a round trip: in the middle of it, or with its commit."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx


@pytest.fixture
async def db(kit_url: Secret) -> AsyncIterator[Database]:
    """An open database with a pool of its own."""
    database = Database(kit_url, pool_size=4, application_name="pipeline")
    await database.open()
    async with database.transaction() as tx:
        await tx.run("CREATE TABLE IF NOT EXISTS notes (text text PRIMARY KEY)")
        await tx.run("TRUNCATE notes")
    yield database
    await database.close()


@pytest.fixture
def rival(kit_url: Secret) -> Rival:
    """A second connection, which alters rows and holds locks."""
    return Rival(kit_url)


async def write(tx: Tx, text: str) -> int:
    return await tx.run("INSERT INTO notes (text) VALUES (%(text)s)", {"text": text})


async def count(tx: Tx) -> int:
    found: int = await tx.value("SELECT count(*)::int FROM notes")
    return found


async def notes(rival: Rival) -> list[str]:
    return [text for (text,) in await rival.rows("SELECT text FROM notes ORDER BY text")]


async def test_statements_are_carried_out_in_the_order_sent(db: Database, rival: Rival) -> None:
    async with db.transaction() as tx:
        async with tx.pipeline() as send:
            before, one, between, two, after = (
                send(count(tx)),
                send(write(tx, "a")),
                send(count(tx)),
                send(write(tx, "b")),
                send(count(tx)),
            )
        assert [task.result() for task in (before, one, between, two, after)] == [0, 1, 1, 1, 2]
        assert await count(tx) == 2
    assert await notes(rival) == ["a", "b"]


async def test_a_statement_sees_what_was_committed_before_it_began(db: Database, rival: Rival) -> None:
    """So a statement that waits for a lock sees what the lock's holder has committed."""
    await rival.run("INSERT INTO notes VALUES ('held')")

    async def ask_both() -> int:
        async with db.transaction() as tx:
            async with tx.pipeline() as send:
                send(tx.run("SELECT 1 FROM notes WHERE text = 'held' FOR UPDATE"))
                found = send(count(tx))
            return found.result()

    async with rival.holding("SELECT 1 FROM notes FOR UPDATE"):
        asking = await rival.while_waiting(ask_both())
        await rival.run("INSERT INTO notes VALUES ('meanwhile')")
    assert await asking == 2


async def test_the_first_failure_is_raised_and_nothing_is_kept(db: Database, rival: Rival) -> None:
    async def write_all() -> None:
        async with db.transaction() as tx, tx.pipeline() as send:
            for text in ("a", "b", "a", "c"):
                send(write(tx, text))

    with pytest.raises(psycopg.errors.UniqueViolation) as raised:
        await write_all()
    assert "notes_pkey" in str(raised.value)
    assert await notes(rival) == []
    async with db.transaction() as tx:
        assert await count(tx) == 0


async def test_errors_after_the_answers_are_raised_in_the_order_sent(db: Database, rival: Rival) -> None:
    async def refuse(tx: Tx, what: str) -> None:
        assert await write(tx, what) == 1
        raise ValueError(what)

    async def judge() -> None:
        async with db.transaction() as tx, tx.pipeline() as send:
            send(write(tx, "fine"))
            send(refuse(tx, "first"))
            send(refuse(tx, "second"))

    with pytest.raises(ValueError, match="first"):
        await judge()
    assert await notes(rival) == []


async def test_a_failure_before_its_statement_is_sent_holds_up_nothing(db: Database, rival: Rival) -> None:
    async def never_sends() -> None:
        raise ValueError("before")

    async def judge() -> None:
        async with db.transaction() as tx, tx.pipeline() as send:
            send(write(tx, "fine"))
            send(never_sends())

    with pytest.raises(ValueError, match="before"):
        await asyncio.wait_for(judge(), 10)
    assert await notes(rival) == []


async def test_a_cancelled_pipeline_keeps_nothing_and_returns_its_connection(db: Database, rival: Rival) -> None:
    await rival.run("INSERT INTO notes VALUES ('held')")

    async def wait() -> None:
        async with db.transaction() as tx, tx.pipeline() as send:
            send(write(tx, "mine"))
            send(tx.run("SELECT 1 FROM notes WHERE text = 'held' FOR UPDATE"))

    async with rival.holding("SELECT 1 FROM notes FOR UPDATE"):
        for _ in range(5):  # More than the pool has.
            waiting = await rival.while_waiting(wait())
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    assert await notes(rival) == ["held"]
    async with db.transaction() as tx:
        assert await count(tx) == 1


async def test_a_connection_that_is_lost_during_a_pipeline_is_unavailable(db: Database, rival: Rival) -> None:
    await rival.run("INSERT INTO notes VALUES ('held')")

    async def wait() -> None:
        async with db.transaction() as tx, tx.pipeline() as send:
            send(write(tx, "mine"))
            send(tx.run("SELECT 1 FROM notes WHERE text = 'held' FOR UPDATE"))

    async with rival.holding("SELECT 1 FROM notes FOR UPDATE"):
        waiting = await rival.while_waiting(wait())
        await rival.kill_waiting_sessions()
        with pytest.raises(DatabaseUnavailable):
            await waiting
    assert await notes(rival) == ["held"]


async def test_an_ending_commits_its_statements(db: Database, rival: Rival) -> None:
    async with db.transaction() as tx:
        await write(tx, "before")
        async with tx.ending():
            await write(tx, "a")
            await write(tx, "b")
        assert await notes(rival) == ["a", "b", "before"]


@pytest.mark.parametrize("at", range(3))
async def test_an_ending_that_fails_keeps_nothing(db: Database, rival: Rival, at: int) -> None:
    texts = ["a", "b", "c"]
    texts[at] = "before"

    async def write_all() -> None:
        async with db.transaction() as tx:
            await write(tx, "before")
            async with tx.ending():
                for text in texts:
                    await write(tx, text)

    with pytest.raises(psycopg.errors.UniqueViolation):
        await write_all()
    assert await notes(rival) == []


async def test_an_ending_that_raises_keeps_nothing(db: Database, rival: Rival) -> None:
    async def raise_in_the_middle() -> None:
        async with db.transaction() as tx, tx.ending():
            await write(tx, "a")
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        await raise_in_the_middle()
    assert await notes(rival) == []
    async with db.transaction() as tx:
        assert await count(tx) == 0


async def test_a_connection_that_is_lost_during_an_ending_is_unavailable(db: Database, rival: Rival) -> None:
    await rival.run("INSERT INTO notes VALUES ('held')")

    async def end() -> None:
        async with db.transaction() as tx, tx.ending():
            await write(tx, "mine")
            await tx.run("UPDATE notes SET text = 'mine too' WHERE text = 'held'")

    async with rival.holding("SELECT 1 FROM notes FOR UPDATE"):
        waiting = await rival.while_waiting(end())
        await rival.kill_waiting_sessions()
        with pytest.raises(DatabaseUnavailable):
            await waiting
    assert await notes(rival) == ["held"]


async def test_concurrent_pipelines_do_not_mix_up_their_answers(db: Database) -> None:
    async def ask_own(number: int) -> list[Any]:
        async with db.transaction() as tx:
            async with tx.pipeline() as send:
                own = [send(tx.value("SELECT %(it)s::int", {"it": number * 10 + place})) for place in range(5)]
            return [task.result() for task in own]

    answers = await asyncio.gather(*(ask_own(number) for number in range(40)))
    assert answers == [[number * 10 + place for place in range(5)] for number in range(40)]
