"""Transactions of few round trips: what they promise when something breaks in the middle of one."""

from collections.abc import Callable, Coroutine
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import psycopg
import pytest
from support.database.notes_table import Note, read_notes, write_note
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.pipelined import PipelinedTransactions
from soundmark.kit.postgres.pipelined_tx import PipelinedTx

from .pipelined_changes import backend, change, echo

_HELD = "SELECT 1 FROM notes WHERE text = 'held' FOR UPDATE"


async def test_values_of_every_type_are_written_and_read(transactions: PipelinedTransactions) -> None:
    moment = datetime(2026, 11, 26, 1, 2, 3, 4000, tzinfo=UTC)
    async with transactions.transaction(tenant="one") as tx:
        for kind, value in (
            ("text", "ä'\"\\"),
            ("text", None),
            ("bigint", -(2**40)),
            ("boolean", True),
            ("bytea", b"\x00\xff"),
            ("timestamptz", moment),
            ("date", date(2026, 11, 26)),
            ("text[]", ["a", '"', "\\", "{}"]),
            ("text[]", []),
            ("bytea[]", [b"\x00", b"\\"]),
        ):
            assert await tx.value(f"SELECT %(value)s::{kind}", {"value": value}) == value
        with pytest.raises(AssertionError, match="float"):
            await tx.value("SELECT %(value)s", {"value": 1.5})
        assert await tx.all(Note, "SELECT 'a' AS text WHERE %(is)s::boolean", {"is": True}) == [Note("a")]
        assert await tx.one_or_none(Note, "SELECT 'a' AS text WHERE false") is None
        assert await tx.value("SELECT 1 WHERE false") is None


async def test_two_round_trips_read_and_then_write_and_commit(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    assert await change(transactions, "a", "b") == ["a", "b"]
    assert await read_notes(kit_rival) == ["a", "b"]


async def test_a_statement_that_returns_nothing_may_stand_alone_or_in_a_pipeline(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    async with transactions.transaction(tenant="one") as tx:
        await write_note(tx, "a")
        async with tx.pipeline() as send:
            send(write_note(tx, "b"))
            count = send(tx.value("SELECT count(*)::int FROM notes"))
    assert count.result() == 2
    assert await read_notes(kit_rival) == ["a", "b"]


async def test_closing_the_database_closes_their_connections(
    kit_url: Secret, transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    assert transactions is not None, "the table is empty"
    database = Database(kit_url, pool_size=1, application_name="kit-test")
    await database.open()
    pid = await backend(PipelinedTransactions(database, size=1))
    await database.close()
    await kit_rival.until_found("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s", pid)


async def test_a_statement_sees_what_was_committed_before_it_began(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    """So a statement that waits for a lock sees what the lock's holder has committed."""
    await kit_rival.run("INSERT INTO notes VALUES ('held')")

    async def count() -> int:
        async with transactions.transaction(tenant="one") as tx:
            async with tx.pipeline() as send:
                send(tx.value(_HELD))
                found = send(tx.value("SELECT count(*)::int FROM notes"))
            return int(found.result())

    async with kit_rival.holding("SELECT 1 FROM notes FOR UPDATE"):
        counting = await kit_rival.while_waiting(count())
        await kit_rival.run("INSERT INTO notes VALUES ('meanwhile')")
    assert await counting == 2


async def test_the_tenant_is_a_value_and_ends_with_the_transaction(transactions: PipelinedTransactions) -> None:
    for tenant in ("one", "o'; DROP TABLE notes; --"):
        async with transactions.transaction(tenant=tenant) as tx:
            assert await tx.value("SELECT current_setting('soundmark.tenant')") == tenant
        link = await transactions.open_link()
        assert await link.send([Call("SELECT current_setting('soundmark.tenant')")]) == [[("",)]]


async def test_a_block_that_raises_keeps_nothing(transactions: PipelinedTransactions, kit_rival: Rival) -> None:
    async def refuse(at: str) -> None:
        async with transactions.transaction(tenant="one") as tx:
            async with tx.pipeline() as send:
                send(tx.value("INSERT INTO notes VALUES ('one') RETURNING text"))
                if at == "reading":
                    raise ValueError(at)
            async with tx.ending():
                await write_note(tx, "two")
                raise ValueError(at)

    for at in ("reading", "ending"):
        with pytest.raises(ValueError, match=at):
            await refuse(at)
    async with transactions.transaction(tenant="one"):
        pass  # Nothing was begun, so nothing is committed.
    assert await read_notes(kit_rival) == []
    assert await change(transactions, "one") == ["one"]


@pytest.mark.parametrize("texts", [("a", "a", "b"), ("a", "b", "a"), ("b", "b")])
async def test_a_statement_that_fails_keeps_nothing_and_leaves_the_connection(
    transactions: PipelinedTransactions, kit_rival: Rival, texts: tuple[str, ...]
) -> None:
    async def divide() -> None:
        async with transactions.transaction(tenant="one") as tx, tx.pipeline() as send:
            send(tx.value("INSERT INTO notes VALUES ('one') RETURNING text"))
            send(tx.value("SELECT 1 / 0"))

    before = await backend(transactions)
    with pytest.raises(psycopg.errors.UniqueViolation) as raised:
        await change(transactions, *texts)
    assert str(raised.value) == "SQLSTATE 23505 at notes_pkey"  # No row's content.
    with pytest.raises(psycopg.errors.DivisionByZero):
        await divide()
    assert await read_notes(kit_rival) == []
    assert await backend(transactions) == before


async def test_a_text_that_postgresql_cannot_hold_is_refused_and_not_cut(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    with pytest.raises(psycopg.DataError):
        await change(transactions, "a\0b")
    assert await change(transactions, "a") == ["a"]
    assert await read_notes(kit_rival) == ["a"]


async def test_the_first_error_of_those_who_read_the_answers_is_raised(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    async def refuse(tx: PipelinedTx, what: str) -> None:
        assert await tx.value("INSERT INTO notes VALUES (%(text)s) RETURNING text", {"text": what}) == what
        raise ValueError(what)

    async def ask_twice(tx: PipelinedTx) -> None:
        await echo(tx, "one")
        await echo(tx, "two")

    async def read(*sent: Callable[[PipelinedTx], Coroutine[Any, Any, None]]) -> None:
        async with transactions.transaction(tenant="one") as tx, tx.pipeline() as send:
            for each in sent:
                send(each(tx))

    with pytest.raises(ValueError, match="first"):
        await read(partial(refuse, what="first"), partial(refuse, what="second"))
    with pytest.raises(AssertionError, match="one statement"):
        await read(ask_twice)
    assert await read_notes(kit_rival) == []
