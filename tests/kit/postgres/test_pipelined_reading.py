"""Transactions that only read: one round trip, which may be repeated."""

from dataclasses import dataclass

import psycopg
import pytest
from support.database.notes_table import Note, break_database, read_notes, write_note
from support.database.rival import Rival
from support.tracing.recorded import recording

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.deadline import DeadlinePassed, enforce_deadline
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres import pipelined
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.pipelined import PipelinedTransactions
from soundmark.kit.tracing.spans import enter_job

from .pipelined_changes import backend, backend_of, change, cut, echo


@dataclass(frozen=True)
class Pair:
    first: str
    second: str


async def read_echo(transactions: PipelinedTransactions, text: str) -> str:
    async with transactions.reading(tenant="one") as (tx, send):
        answer = send(echo(tx, text))
    return answer.result()


async def echo_in_transaction(transactions: PipelinedTransactions, text: str) -> str:
    async with transactions.transaction(tenant="one") as tx:
        return await echo(tx, text)


async def test_one_round_trip_begins_reads_and_commits(db: Database) -> None:
    with recording() as recorded:
        transactions = PipelinedTransactions(db, size=1)
        with enter_job("work", "internal", SystemEntropy(), None):
            async with transactions.reading(tenant="one") as (tx, send):
                tenant = send(tx.value("SELECT current_setting('soundmark.tenant')"))
                kind = send(tx.value("SHOW transaction_isolation"))
        await transactions.aclose()
    assert (tenant.result(), kind.result()) == ("one", "read committed")
    statements = [span for span in recorded.spans if span.parent is not None]
    assert [span.name for span in statements] == ["BEGIN", "SET", "SELECT", "SHOW", "COMMIT"]
    assert all(span.attributes and span.attributes["soundmark.pipelined"] for span in statements)


async def test_a_record_has_the_columns_of_its_names_in_any_order(transactions: PipelinedTransactions) -> None:
    async with transactions.reading(tenant="one") as (tx, send):
        straight = send(tx.all(Pair, "SELECT 'a' AS first, 'b' AS second"))
        crossed = send(tx.all(Pair, "SELECT 'b' AS second, 'a' AS first"))
    assert straight.result() == crossed.result() == [Pair("a", "b")]


async def test_a_statement_that_is_planned_anew_is_not_prepared(transactions: PipelinedTransactions) -> None:
    async with transactions.reading(tenant="one") as (tx, send):
        for anew in (True, False):
            send(tx.all(Note, f"SELECT '{anew}' AS text", plan_anew=anew))
        known = send(tx.value("SELECT array_agg(statement)::text FROM pg_prepared_statements"))
    assert "'False' AS text" in known.result()
    assert "'True' AS text" not in known.result()


async def test_a_write_is_refused_and_is_no_outage(transactions: PipelinedTransactions, kit_rival: Rival) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        async with transactions.reading(tenant="one") as (tx, send):
            send(write_note(tx, "a"))
    assert await read_notes(kit_rival) == []


@pytest.mark.parametrize("answered_count", range(4), ids=["none", "begin", "tenant", "first"])
async def test_it_is_repeated_on_another_connection(kit_url: Secret, db: Database, answered_count: int) -> None:
    assert await db.is_ready()
    async with cut(kit_url) as (transactions, proxy):
        before = await backend(transactions)
        proxy.cut_after = answered_count
        async with transactions.reading(tenant="one") as (tx, send):
            text, pid = send(echo(tx, "read")), send(backend_of(tx))
        assert text.result() == "read"
        assert pid.result() != before
        assert proxy.cuts_count == 1


async def test_a_statement_that_fails_leaves_the_connection(transactions: PipelinedTransactions) -> None:
    before = await backend(transactions)
    with pytest.raises(psycopg.errors.DivisionByZero):
        async with transactions.reading(tenant="one") as (tx, send):
            send(tx.value("SELECT 1 / 0"))
    assert await backend(transactions) == before


async def test_an_outage_is_a_database_that_is_unavailable(
    transactions: PipelinedTransactions, superuser: Rival
) -> None:
    assert await read_echo(transactions, "before") == "before"
    async with break_database(superuser):
        with pytest.raises(DatabaseUnavailable):
            await read_echo(transactions, "during")
    assert await read_echo(transactions, "after") == "after"


async def test_no_statement_outlives_the_deadline(transactions: PipelinedTransactions, kit_rival: Rival) -> None:
    async def find_timeout() -> str:
        async with transactions.reading(tenant="one") as (tx, send):
            found = send(tx.value("SHOW statement_timeout"))
        return str(found.result())

    async def sleep() -> None:
        async with enforce_deadline(0.2), transactions.reading(tenant="one") as (tx, send):
            send(tx.value("SELECT pg_sleep(30)::text"))

    async with enforce_deadline(1.5):
        assert await find_timeout() == "2s"
    assert await find_timeout() == "30s"
    with pytest.raises(DeadlinePassed):
        await sleep()
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND strpos(query, 'pg_sleep(30)') > 0"
    await kit_rival.until_rows(running + " AND pid <> pg_backend_pid()", (0,))  # Within the second that it got.


async def test_readings_leave_half_of_the_connections(
    transactions: PipelinedTransactions, kit_rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So slow lists keep nobody from issuing."""
    monkeypatch.setattr(pipelined, "ACQUIRE_TIMEOUT_S", 0.05)

    async def count() -> int:
        async with transactions.reading(tenant="one") as (tx, send):
            found = send(tx.value("SELECT count(*)::int FROM notes"))
        return int(found.result())

    async with kit_rival.holding("LOCK TABLE notes"):
        slow = await kit_rival.while_waiting(count())
        with pytest.raises(DatabaseUnavailable):
            await count()
        assert await echo_in_transaction(transactions, "free") == "free"
    assert await slow == 0
    assert await change(transactions, "a") == ["a"]
    assert await count() == 1


async def test_a_reading_does_not_wait_to_prepare_what_others_write(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    await change(transactions, "a")
    async with kit_rival.holding("LOCK TABLE notes IN SHARE MODE"):
        writing = await kit_rival.while_waiting(change(transactions, "b"))
        async with transactions.reading(tenant="one") as (tx, send):  # On another connection.
            found = send(tx.value("SELECT count(*)::int FROM notes"))
        assert found.result() == 1
    assert await writing == ["b"]
