"""A statement that runs on its own, without a transaction."""

import asyncio

import psycopg
import pytest
from support.database.notes_table import Note, break_database, terminate_connections
from support.database.rival import Rival

from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database


async def test_a_single_statement_returns_one_row_or_none(db: Database, kit_rival: Rival) -> None:
    assert await db.one_or_none(Note, "SELECT text FROM notes WHERE text = %(text)s", {"text": "one"}) is None
    await kit_rival.run("INSERT INTO notes (text) VALUES ('one')")
    assert await db.one_or_none(Note, "SELECT text FROM notes WHERE text = %(text)s", {"text": "one"}) == Note("one")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        await db.one_or_none(Note, "SELECT nothing FROM notes")
    assert await db.one_or_none(Note, "SELECT text FROM notes") == Note("one"), "the connection is as good as before"


async def test_a_single_statement_never_runs_inside_a_transaction(db: Database) -> None:
    """It would not see the transaction's writes."""
    async with db.transaction():
        with pytest.raises(AssertionError):
            await db.one_or_none(Note, "SELECT text FROM notes")


async def test_a_single_statement_survives_the_loss_of_its_connections(db: Database, superuser: Rival) -> None:
    async def read() -> Note | None:
        return await db.one_or_none(Note, "SELECT 'one' AS text")

    async def read_on() -> None:
        """Read until it fails: a connection that the pool was just opening may outlive the first cut."""
        async with asyncio.timeout(30):
            while True:
                await read()
                await terminate_connections(superuser)

    await asyncio.gather(*(read() for _ in range(10)))
    await terminate_connections(superuser)
    assert await asyncio.gather(*(read() for _ in range(10))) == [Note("one")] * 10
    async with break_database(superuser):
        with pytest.raises(DatabaseUnavailable):
            await read_on()
    assert await read() == Note("one")


async def test_a_cancelled_single_statement_means_the_database_is_unavailable(db: Database, superuser: Rival) -> None:
    # Its own statement: one that an earlier test gave up may still sleep.
    sleeping = asyncio.create_task(db.one_or_none(Note, "SELECT pg_sleep(10)::text || 'cancelled' AS text"))
    waits = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND strpos(query, 'cancelled') > 0"
    while not await superuser.rows(f"SELECT pg_cancel_backend(pid) {waits}"):  # noqa: ASYNC110 - the event happens in PostgreSQL
        await asyncio.sleep(0.005)
    with pytest.raises(DatabaseUnavailable, match="in time"):
        await sleeping
    assert await db.is_ready()
