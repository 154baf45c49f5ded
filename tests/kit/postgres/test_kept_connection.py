"""A connection that its owner keeps: replaced when it is lost, and never trusted after a failure."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.kept_connection import KeptConnection
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.postgres.transaction import Tx


@pytest.fixture
def rival(kit_url: Secret) -> Rival:
    """A second connection, which alters rows and holds locks."""
    return Rival(kit_url)


@pytest.fixture
async def kept(db: Database) -> AsyncIterator[KeptConnection]:
    """A kept connection."""
    connection = KeptConnection(db, timeout_s=10)
    yield connection
    await connection.aclose()


async def backend_of(tx: PipelinedTx) -> int:
    ((pid,),) = await tx.rows("SELECT pg_backend_pid()")
    assert isinstance(pid, int)
    return pid


async def insert(tx: PipelinedTx, text: str) -> None:
    await tx.run("INSERT INTO notes (text) VALUES (%(text)s)", {"text": text})


async def notes(rival: Rival) -> list[str]:
    return [text for (text,) in await rival.rows("SELECT text FROM notes ORDER BY text")]


async def test_the_connection_is_kept(kept: KeptConnection) -> None:
    assert await kept.run(backend_of) == await kept.run(backend_of)


async def test_a_connection_that_died_idle_is_replaced(kept: KeptConnection, rival: Rival) -> None:
    dead = await kept.run(backend_of)
    await rival.run("SELECT pg_terminate_backend(%s, 10000)", dead)
    assert await kept.run(backend_of) != dead


async def test_work_that_loses_two_connections_finds_the_database_unavailable(
    kept: KeptConnection, rival: Rival
) -> None:
    attempts: list[int] = []

    async def lose(tx: PipelinedTx) -> None:
        attempts.append(await backend_of(tx))
        await rival.run("SELECT pg_terminate_backend(%s, 10000)", attempts[-1])
        await backend_of(tx)

    with pytest.raises(DatabaseUnavailable):
        await kept.run(lose)
    assert len(set(attempts)) == 2
    assert await kept.run(backend_of) not in attempts


async def test_work_that_may_have_committed_is_not_repeated(kept: KeptConnection, rival: Rival) -> None:
    """The server dies during the commit: nobody knows whether it took place."""
    await rival.run("INSERT INTO notes VALUES ('held')")
    attempts: list[int] = []

    async def end(tx: PipelinedTx) -> None:
        attempts.append(await backend_of(tx))
        await tx.run("BEGIN")
        async with tx.ending():
            await tx.run("UPDATE notes SET text = 'mine' WHERE text = 'held'")

    async with rival.holding("SELECT 1 FROM notes FOR UPDATE"):
        ending = await rival.while_waiting(kept.run(end))
        await rival.kill_waiting_sessions()
        with pytest.raises(DatabaseUnavailable):
            await ending
    assert len(attempts) == 1


async def test_work_that_takes_too_long_is_stopped(db: Database, rival: Rival) -> None:
    kept = KeptConnection(db, timeout_s=0.2)
    await rival.run("INSERT INTO notes VALUES ('held')")
    async with rival.holding("SELECT 1 FROM notes FOR UPDATE"):
        with pytest.raises(DatabaseUnavailable, match="in time"):
            await kept.run(lambda tx: tx.run("UPDATE notes SET text = 'mine'"))
    assert await kept.run(backend_of) > 0
    assert await notes(rival) == ["held"]
    await kept.aclose()


async def test_a_statement_timeout_is_not_tried_again(kept: KeptConnection) -> None:
    attempts: list[None] = []

    async def time_out(tx: PipelinedTx) -> None:
        attempts.append(None)
        await tx.run("SET statement_timeout = '20ms'")
        await tx.run("SELECT pg_sleep(10)")

    with pytest.raises(DatabaseUnavailable, match="in time"):
        await kept.run(time_out)
    assert len(attempts) == 1


async def test_any_other_error_of_the_work_undoes_its_transaction(kept: KeptConnection, rival: Rival) -> None:
    async def fail(tx: PipelinedTx) -> None:
        await tx.run("BEGIN")
        await insert(tx, "mine")
        await insert(tx, "mine")

    with pytest.raises(psycopg.errors.UniqueViolation):
        await kept.run(fail)
    await kept.run(lambda tx: insert(tx, "other"))
    assert await notes(rival) == ["other"]


async def test_work_that_is_cancelled_undoes_its_transaction(kept: KeptConnection, rival: Rival) -> None:
    await rival.run("INSERT INTO notes VALUES ('held')")

    async def wait(tx: PipelinedTx) -> None:
        await tx.run("BEGIN")
        await insert(tx, "mine")
        await tx.run("SELECT 1 FROM notes WHERE text = 'held' FOR UPDATE")

    async with rival.holding("SELECT 1 FROM notes WHERE text = 'held' FOR UPDATE"):
        waiting = await rival.while_waiting(kept.run(wait))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await kept.run(lambda tx: insert(tx, "other"))
    assert await notes(rival) == ["held", "other"]


async def test_each_new_connection_is_prepared(db: Database, rival: Rival) -> None:
    prepared: list[int] = []

    async def prepare(tx: Tx) -> None:
        prepared.append(await tx.value("SELECT pg_backend_pid()"))

    kept = KeptConnection(db, timeout_s=10, prepare=prepare)
    first = await kept.run(backend_of)
    await rival.run("SELECT pg_terminate_backend(%s, 10000)", first)
    second = await kept.run(backend_of)
    await kept.run(backend_of)
    assert prepared == [first, second]
    await kept.aclose()


async def test_a_pipeline_returns_to_each_statement_its_own_rows(kept: KeptConnection) -> None:
    async def work(tx: PipelinedTx) -> list[object]:
        async with tx.pipeline() as send:
            send(tx.run("BEGIN"))
            numbers = send(tx.rows("SELECT unnest(%(numbers)s::integer[])", {"numbers": "{1,2}"}))
            send(insert(tx, "mine"))
            texts = send(tx.rows("SELECT text FROM notes WHERE text = ANY(%(texts)s::text[])", {"texts": ["mine"]}))
            nothing = send(tx.rows("SELECT text FROM notes WHERE text = %(text)s", {"text": "nobody's"}))
        return [numbers.result(), texts.result(), nothing.result()]

    assert await kept.run(work) == [[(1,), (2,)], [("mine",)], []]


async def test_a_pipeline_raises_its_first_failure_and_does_nothing_after_it(
    kept: KeptConnection, rival: Rival
) -> None:
    async def work(tx: PipelinedTx) -> None:
        async with tx.pipeline() as send:
            send(insert(tx, "mine"))
            send(insert(tx, "mine"))
            send(tx.run("COMMIT"))
            send(insert(tx, "later"))

    with pytest.raises(psycopg.errors.UniqueViolation):
        await kept.run(work)
    assert await notes(rival) == []


async def test_a_block_that_fails_sends_no_commit(kept: KeptConnection, rival: Rival) -> None:
    async def work(tx: PipelinedTx) -> None:
        await tx.run("BEGIN")
        await insert(tx, "mine")
        async with tx.ending():
            await insert(tx, "other")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await kept.run(work)
    assert await notes(rival) == []
