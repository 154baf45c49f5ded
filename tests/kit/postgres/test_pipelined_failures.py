"""Transactions of few round trips: what they promise when a connection, a server or a caller leaves one."""

import asyncio
import contextvars
import random
from typing import Any, LiteralString

import pytest
from support.database.notes_table import read_notes, write_note
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres import pipelined
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.pipelined import PipelinedTransactions
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.postgres.transaction import Answer, Send

from .pipelined_changes import backend, backend_of, change, cut, echo


async def read_then_write(
    transactions: PipelinedTransactions, *, first: Call | None = None, between: LiteralString | None = None, text: str
) -> int:
    """Read in one round trip, and write `text` in the second, after the given ones; return the backend that read."""
    if first is not None:
        link = await transactions.open_link()
        await link.send([first])
        transactions.rest(link)
    async with transactions.transaction(tenant="one") as tx:
        async with tx.pipeline() as send:
            send(tx.value("SELECT 1 FROM notes FOR UPDATE"))
            pid = send(backend_of(tx))
        if between is not None:
            await tx.run(between)
        async with tx.ending():
            await write_note(tx, text)
    return pid.result()


@pytest.mark.parametrize("answered_count", range(5), ids=["none", "begin", "tenant", "first", "second"])
async def test_the_first_round_trip_is_repeated_when_the_connection_is_reset(
    kit_url: Secret, db: Database, kit_rival: Rival, answered_count: int
) -> None:
    """Nothing has been changed by then."""
    assert await db.is_ready()
    async with cut(kit_url) as (transactions, proxy):
        proxy.cut_after = answered_count
        assert await change(transactions, "a", "b") == ["a", "b"]
        assert proxy.cuts_count == 1
    assert await read_notes(kit_rival) == ["a", "b", "first"]


@pytest.mark.parametrize("answered_count", range(3), ids=["none", "first", "commit"])
async def test_the_commit_is_never_repeated_once_sent(
    kit_url: Secret, db: Database, kit_rival: Rival, answered_count: int
) -> None:
    """The server has got it, and committed."""

    async def write() -> None:
        async with transactions.transaction(tenant="one") as tx:
            await echo(tx, "begun")
            proxy.cut_after = answered_count
            async with tx.ending():
                await write_note(tx, "second")

    assert await db.is_ready()
    async with cut(kit_url) as (transactions, proxy):
        with pytest.raises(DatabaseUnavailable):
            await write()
        assert proxy.cuts_count == 1
        await kit_rival.until_rows("SELECT text FROM notes ORDER BY text", ("first",), ("second",))
        assert await change(transactions, "third") == ["third"]


async def test_an_ending_without_a_round_trip_before_it_is_not_repeated_either(
    kit_url: Secret, db: Database, kit_rival: Rival
) -> None:
    assert await db.is_ready()
    async with cut(kit_url) as (transactions, proxy):
        proxy.cut_after = 3
        with pytest.raises(DatabaseUnavailable):
            async with transactions.transaction(tenant="one") as tx, tx.ending():
                await write_note(tx, "second")
        await kit_rival.until_rows("SELECT text FROM notes ORDER BY text", ("first",), ("second",))


async def test_a_server_that_dies_during_the_commit_leaves_nothing(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    async with kit_rival.holding("LOCK TABLE notes IN SHARE MODE"):
        waiting = await kit_rival.while_waiting(change(transactions, "mine"))
        await kit_rival.kill_waiting_sessions()
        with pytest.raises(DatabaseUnavailable):
            await waiting
    assert await read_notes(kit_rival) == []
    assert await change(transactions, "mine") == ["mine"]


@pytest.mark.parametrize("statement", ["DISCARD ALL", "DEALLOCATE ALL", "SET default_transaction_read_only = on"])
async def test_a_session_that_forgot_statements_or_became_read_only_is_replaced(
    transactions: PipelinedTransactions, kit_rival: Rival, statement: LiteralString
) -> None:
    await change(transactions, "before")
    stale = await backend(transactions)
    assert await read_then_write(transactions, first=Call(statement), text="after") != stale
    assert await read_notes(kit_rival) == ["after", "before"]


async def test_statements_that_are_forgotten_between_the_round_trips_change_nothing(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    await change(transactions, "before")
    with pytest.raises(DatabaseUnavailable):
        await read_then_write(transactions, between="DEALLOCATE ALL", text="lost")
    assert await read_notes(kit_rival) == ["before"]
    assert await change(transactions, "after") == ["after"]


async def test_a_result_type_that_a_migration_changed_is_planned_anew(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    async def read() -> Any:
        async with transactions.transaction(tenant="one") as tx:
            return await tx.value("SELECT value FROM migrated")

    await kit_rival.run("CREATE TABLE migrated AS SELECT 1::int AS value")
    try:
        assert await read() == 1
        await kit_rival.run("ALTER TABLE migrated ALTER COLUMN value TYPE text USING 'one'")
        assert await read() == "one"
    finally:
        await kit_rival.run("DROP TABLE migrated")


async def test_a_server_that_stays_read_only_is_unavailable(
    transactions: PipelinedTransactions, kit_rival: Rival, superuser: Rival
) -> None:
    """A standby that nobody promoted."""
    await superuser.run("ALTER DATABASE kit_under_test SET default_transaction_read_only = on")
    try:
        with pytest.raises(DatabaseUnavailable):
            await change(transactions, "one")
    finally:
        await superuser.run("ALTER DATABASE kit_under_test RESET default_transaction_read_only")
    await transactions.aclose()
    assert await change(transactions, "two") == ["two"]
    assert await read_notes(kit_rival) == ["two"]


async def test_a_late_answer_reaches_nobody(kit_url: Secret, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await db.is_ready()
    async with cut(kit_url) as (transactions, proxy):
        with monkeypatch.context() as patch:
            patch.setattr(pipelined, "_TRIP_TIMEOUT_S", 0.3)
            proxy.is_holding = True
            with pytest.raises(DatabaseUnavailable, match="in time"):
                await change(transactions, "late")
        proxy.is_holding = False
        assert await change(transactions, "next") == ["next"]


async def test_the_server_stops_a_statement_whose_time_is_up_and_the_connection_is_kept(
    transactions: PipelinedTransactions,
) -> None:
    async def ask() -> None:
        async with transactions.transaction(tenant="one") as tx:
            await tx.run("SET LOCAL statement_timeout = '20ms'")
            await tx.value("SELECT pg_sleep(10)::text")

    before = await backend(transactions)
    with pytest.raises(DatabaseUnavailable, match="in time"):
        await ask()
    assert await backend(transactions) == before


async def test_a_cancelled_transaction_keeps_nothing_and_gives_its_place_back(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    async with kit_rival.holding("LOCK TABLE notes IN SHARE MODE"):
        for _ in range(4):  # More than there are connections.
            waiting = await kit_rival.while_waiting(change(transactions, "mine"))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await kit_rival.kill_waiting_sessions()  # The server has not noticed that nobody is there.
    assert await read_notes(kit_rival) == []
    assert await change(transactions, "mine") == ["mine"]


async def test_ten_thousand_cancellations_leave_every_other_with_their_own_answer(db: Database) -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    transactions = PipelinedTransactions(db, size=4)
    cancelled = answered = 0

    def ask_all(tx: PipelinedTx, send: Send, texts: list[str]) -> list[Answer[str]]:
        tenant: Answer[str] = send(tx.value("SELECT current_setting('soundmark.tenant')"))
        return [tenant, *(send(echo(tx, text)) for text in texts)]

    async def ask(number: int) -> None:
        nonlocal answered
        tenant = f"tenant {number}"
        texts = [f"{number}-{place}" for place in range(chance.randrange(1, 4))]
        if chance.random() < 0.5:
            async with transactions.reading(tenant=tenant) as (tx, send):
                read = ask_all(tx, send, texts)
        else:
            async with transactions.transaction(tenant=tenant) as tx:
                async with tx.pipeline() as send:
                    read = ask_all(tx, send, texts)
                assert await echo(tx, texts[0]) == texts[0]
        assert [one.result() for one in read] == [tenant, *texts]
        answered += 1

    while cancelled < 10_000:
        tasks = [asyncio.create_task(ask(cancelled * 100 + place)) for place in range(100)]
        for task in chance.sample(tasks, 95):
            if chance.random() < 0.1:
                await asyncio.sleep(chance.choice((0, 0, 0.0005)))
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        cancelled += sum(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        assert {type(outcome) for outcome in outcomes} <= {type(None), asyncio.CancelledError}
    assert answered > 500
    await transactions.aclose()


async def test_more_transactions_than_connections_take_turns_and_do_not_wait_for_ever(
    transactions: PipelinedTransactions, kit_rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await asyncio.gather(*(change(transactions, str(number)) for number in range(20))) == [
        [str(number)] for number in range(20)
    ]
    monkeypatch.setattr(pipelined, "ACQUIRE_TIMEOUT_S", 0.05)
    async with kit_rival.holding("LOCK TABLE notes"):
        waiting = [asyncio.create_task(change(transactions, text)) for text in ("a", "b")]
        await kit_rival.until_someone_waits(2)
        with pytest.raises(DatabaseUnavailable):
            await change(transactions, "c")
    assert [await one for one in waiting] == [["a"], ["b"]]


async def test_the_connection_used_last_is_used_next_and_another_closes_after_a_minute(
    transactions: PipelinedTransactions, kit_rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also knows what the first has prepared, before anybody asks."""
    await change(transactions, "prepared")
    async with transactions.transaction(tenant="one") as outer:
        first = await backend_of(outer)

        async def use_second() -> tuple[int, list[Any]]:
            async with transactions.transaction(tenant="one") as inner:
                known = await inner.value("SELECT array_agg(statement) FROM pg_prepared_statements")
                return await backend_of(inner), known

        second, known = await asyncio.create_task(use_second(), context=contextvars.Context())
    assert first != second
    assert any("INSERT INTO notes" in statement for statement in known)
    assert await backend(transactions) == first
    monkeypatch.setattr(pipelined, "_RESTING_MAX_S", 0)
    await backend(transactions)
    await kit_rival.until_found("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s", second)


async def test_a_connection_that_died_idle_is_replaced(transactions: PipelinedTransactions, kit_rival: Rival) -> None:
    dead = await backend(transactions)
    await kit_rival.run("SELECT pg_terminate_backend(%s, 10000)", dead)
    assert await change(transactions, "one") == ["one"]
    assert await backend(transactions) != dead


async def test_a_transaction_inside_another_is_refused(db: Database, transactions: PipelinedTransactions) -> None:
    with pytest.raises(AssertionError, match="inside a transaction"):
        async with db.transaction(), transactions.transaction(tenant="one"):
            pass
    with pytest.raises(AssertionError, match="inside a transaction"):
        async with transactions.transaction(tenant="one"), db.transaction():
            pass


async def test_what_a_transaction_announces_is_taken_from_the_database(
    db: Database, transactions: PipelinedTransactions
) -> None:
    async with transactions.transaction(tenant="one") as tx:
        tx.announce("one")
        assert db.take_announced() == set()
    assert db.take_announced() == {"one"}


async def test_closing_fails_those_who_wait_and_the_next_use_opens_another(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    before = await backend(transactions)
    async with kit_rival.holding("LOCK TABLE notes"):
        waiting = await kit_rival.while_waiting(change(transactions, "one"))
        await transactions.aclose()
        with pytest.raises(DatabaseUnavailable):
            await waiting
    assert await backend(transactions) != before
