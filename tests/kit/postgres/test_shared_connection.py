"""A connection with many users at once: every answer reaches the request that it belongs to, whatever breaks."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import LiteralString

import psycopg
import pytest
from support.database.cutting_proxy import CuttingProxy
from support.database.notes_table import read_notes
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.link import Call, Rows
from soundmark.kit.postgres.shared_connection import Planning, Preface, SharedConnection

_BACKEND = Call("SELECT pg_backend_pid()")
_INSERT = "INSERT INTO notes VALUES ($1::text)"
_ECHO = "SELECT $1::text"


@pytest.fixture
async def shared(db: Database) -> AsyncIterator[SharedConnection]:
    """A shared connection."""
    connection = SharedConnection(db, timeout_s=10)
    yield connection
    await connection.aclose()


async def read(shared: SharedConnection, *calls: Call) -> list[Rows]:
    return await shared.run(*calls, is_repeatable=True)


async def backend_of(shared: SharedConnection) -> int:
    ((row,),) = await read(shared, _BACKEND)
    pid: int = row[0]
    return pid


async def write(shared: SharedConnection, *texts: str) -> list[Rows]:
    return await shared.run(*(Call(_INSERT, (text,)) for text in texts), is_repeatable=False)


@pytest.fixture
async def proxy(kit_url: Secret, db: Database) -> CuttingProxy:
    """A proxy in front of the empty database."""
    assert await db.is_ready()
    return CuttingProxy(kit_url)


@contextlib.asynccontextmanager
async def connected(proxy: CuttingProxy, timeout_s: float = 10) -> AsyncIterator[SharedConnection]:
    """Yield a shared connection through the proxy, open."""
    async with proxy.serving() as db:
        shared = SharedConnection(db, timeout_s=timeout_s)
        await backend_of(shared)
        yield shared
        await shared.aclose()


async def test_calls_of_one_round_trip_are_answered_in_order_and_typed(shared: SharedConnection) -> None:
    answers = await read(
        shared,
        Call("SELECT $1::text, $2::int, NULL::text, '\\x00ff'::bytea", ("ä", "7")),
        Call(_INSERT, ("one",)),
        Call("SELECT text FROM notes WHERE text = ANY($1::text[])", ("{one,two}",)),
        Call(_ECHO, (None,)),
    )
    assert answers == [[("ä", 7, None, b"\x00\xff")], [], [("one",)], [(None,)]]
    assert await read(shared) == []


async def test_a_preface_runs_on_each_new_connection_and_again_when_it_is_due(db: Database) -> None:
    clock = FakeClock()
    backend_and_time = Call("SELECT pg_backend_pid(), clock_timestamp()::text")
    shared = SharedConnection(db, timeout_s=10, preface=Preface(backend_and_time, 100, clock))

    async def ask() -> tuple[object, object]:
        preface, rows = await shared.run_prefaced(_BACKEND, is_repeatable=True)
        assert (preface[0][0],) == rows[0][0]
        return preface[0]

    first = await ask()
    assert await ask() == first
    clock.advance(seconds=100)
    second = await ask()
    assert second[0] == first[0]
    assert second != first
    await shared.aclose()
    assert (await ask())[0] != first[0]
    assert await read(shared, _BACKEND) != [[]]
    await shared.aclose()


async def test_many_share_one_connection_that_is_opened_once(shared: SharedConnection) -> None:
    assert len(set(await asyncio.gather(*(backend_of(shared) for _ in range(50))))) == 1
    answers = await asyncio.gather(*(read(shared, Call(_ECHO, (str(number),))) for number in range(50)))
    assert answers == [[[(str(number),)]] for number in range(50)]


async def test_a_round_trip_that_fails_changes_nothing_and_harms_nobody(
    shared: SharedConnection, kit_rival: Rival
) -> None:
    before = await backend_of(shared)
    failed, other = await asyncio.gather(
        write(shared, "one", "two", "one", "three"), write(shared, "other"), return_exceptions=True
    )
    assert isinstance(failed, psycopg.errors.UniqueViolation)
    assert other == [[]]
    with pytest.raises(psycopg.errors.UndefinedColumn):
        await read(shared, Call("SELECT nothing FROM notes"))
    assert await read_notes(kit_rival) == ["other"]
    assert await backend_of(shared) == before


async def test_a_commit_that_fails_fails_the_round_trip_alone(shared: SharedConnection, kit_rival: Rival) -> None:
    await kit_rival.run("CREATE TABLE deferred (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    try:
        insert = Call("INSERT INTO deferred VALUES (1)")
        failed, other = await asyncio.gather(
            shared.run(insert, insert, is_repeatable=False), read(shared, Call(_ECHO, ("x",))), return_exceptions=True
        )
        assert isinstance(failed, psycopg.errors.UniqueViolation)
        assert other == [[("x",)]]
        assert await read(shared, Call("SELECT id FROM deferred")) == [[]]
    finally:
        await kit_rival.run("DROP TABLE deferred")


@pytest.mark.parametrize(("value", "error"), [("a\0b", psycopg.DataError), ("\ud800", UnicodeEncodeError)])
async def test_a_text_that_postgresql_cannot_hold_is_refused_and_not_cut(
    shared: SharedConnection, value: str, error: type[Exception]
) -> None:
    before = await backend_of(shared)
    with pytest.raises(error):
        await read(shared, Call(_ECHO, (value,)))
    assert await backend_of(shared) == before


async def test_a_value_that_cannot_be_read_fails_its_caller_alone(shared: SharedConnection) -> None:
    """Python has no such day."""
    failed, other = await asyncio.gather(
        read(shared, Call("SELECT 'infinity'::date")), read(shared, Call(_ECHO, ("other",))), return_exceptions=True
    )
    assert isinstance(failed, psycopg.DataError)
    assert other == [[("other",)]]


async def test_requests_and_answers_larger_than_any_buffer_pass(shared: SharedConnection) -> None:
    texts = [letter * 5_000_000 for letter in "abcdef"]
    answers = await asyncio.gather(*(read(shared, Call(_ECHO, (text,))) for text in texts))
    assert [rows for (rows,) in answers] == [[(text,)] for text in texts]


async def test_a_connection_that_died_idle_is_replaced_also_for_writes(
    shared: SharedConnection, kit_rival: Rival
) -> None:
    dead = await backend_of(shared)
    await kit_rival.run("SELECT pg_terminate_backend(%s, 10000)", dead)
    await write(shared, "one")
    assert await backend_of(shared) != dead
    assert await read_notes(kit_rival) == ["one"]


@pytest.mark.parametrize("answered_count", [0, 1, 2, 3], ids=["none", "first", "second", "last"])
async def test_reads_are_repeated_when_the_connection_is_reset(proxy: CuttingProxy, answered_count: int) -> None:
    async with connected(proxy) as shared:
        proxy.cut_after = answered_count
        answers, other = await asyncio.gather(
            read(shared, *(Call(_ECHO, (text,)) for text in "abc")), read(shared, Call(_ECHO, ("other",)))
        )
    assert (answers, other) == ([[("a",)], [("b",)], [("c",)]], [[("other",)]])
    assert proxy.cuts_count == 1


@pytest.mark.parametrize("answered_count", [0, 1, 2, 3], ids=["none", "first", "second", "last"])
async def test_writes_are_never_repeated_once_sent(proxy: CuttingProxy, kit_rival: Rival, answered_count: int) -> None:
    """The server has got all of them, and committed them."""
    async with connected(proxy) as shared:
        proxy.cut_after = answered_count
        with pytest.raises(DatabaseUnavailable):
            await write(shared, "a", "b", "c")
        await kit_rival.until_rows("SELECT text FROM notes ORDER BY text", ("a",), ("b",), ("c",))
        await write(shared, "d")
    assert proxy.cuts_count == 1


async def test_an_idle_connection_that_is_reset_together_with_its_last_answer_is_replaced(
    proxy: CuttingProxy, kit_rival: Rival
) -> None:
    """uvloop reports data and error as one event, of which the data are read first."""
    async with connected(proxy) as shared:
        proxy.is_cutting_when_ready = True
        await write(shared, "one")
        assert proxy.cuts_count == 1
        await write(shared, "two")
    assert await read_notes(kit_rival) == ["one", "two"]


async def test_reads_that_lose_two_connections_find_the_database_unavailable(shared: SharedConnection) -> None:
    with pytest.raises(DatabaseUnavailable):
        await read(shared, Call("SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(10)"))
    assert await write(shared, "one") == [[]]


@pytest.mark.parametrize("statement", ["DISCARD ALL", "DEALLOCATE ALL"])
@pytest.mark.parametrize("is_repeatable", [True, False])
async def test_statements_that_the_server_forgot_are_prepared_again(
    shared: SharedConnection, kit_rival: Rival, statement: LiteralString, is_repeatable: bool
) -> None:
    """They were refused, so nothing is committed, and even a write may be sent again."""
    await write(shared, "before")
    await read(shared, Call(statement))
    calls = [Call(_INSERT, ("first",)), Call(_INSERT, ("second",))]
    assert await shared.run(*calls, is_repeatable=is_repeatable) == [[], []]
    assert await read_notes(kit_rival) == ["before", "first", "second"]


async def test_those_in_flight_on_a_connection_that_is_replaced_get_their_answers(
    proxy: CuttingProxy, kit_rival: Rival
) -> None:
    async with connected(proxy) as shared:
        await read(shared, Call(_ECHO, ("prepared",)))
        await read(shared, Call("DEALLOCATE ALL"))
        forgotten, written = await asyncio.gather(read(shared, Call(_ECHO, ("again",))), write(shared, "new"))
    assert (forgotten, written) == ([[("again",)]], [[]])
    assert await read_notes(kit_rival) == ["new"]


async def test_a_result_type_that_a_migration_changed_is_planned_anew(
    shared: SharedConnection, kit_rival: Rival
) -> None:
    await kit_rival.run("CREATE TABLE migrated AS SELECT 1::int AS value")
    try:
        assert await read(shared, Call("SELECT value FROM migrated")) == [[(1,)]]
        await kit_rival.run("ALTER TABLE migrated ALTER COLUMN value TYPE text USING 'one'")
        assert await read(shared, Call("SELECT value FROM migrated")) == [[("one",)]]
    finally:
        await kit_rival.run("DROP TABLE migrated")


async def test_a_session_that_became_read_only_is_replaced(shared: SharedConnection, kit_rival: Rival) -> None:
    standby = await backend_of(shared)
    await read(shared, Call("SET default_transaction_read_only = on"))
    await write(shared, "one")
    assert await backend_of(shared) != standby
    assert await read_notes(kit_rival) == ["one"]


async def test_a_server_that_stays_read_only_is_unavailable(
    shared: SharedConnection, kit_rival: Rival, superuser: Rival
) -> None:
    """A standby that nobody promoted."""
    await superuser.run("ALTER DATABASE kit_under_test SET default_transaction_read_only = on")
    try:
        with pytest.raises(DatabaseUnavailable):
            await write(shared, "one")
    finally:
        await superuser.run("ALTER DATABASE kit_under_test RESET default_transaction_read_only")
    await write(shared, "two")
    assert await read_notes(kit_rival) == ["two"]


async def test_a_late_answer_reaches_nobody(proxy: CuttingProxy) -> None:
    async with connected(proxy, timeout_s=0.5) as shared:
        proxy.is_holding = True
        with pytest.raises(DatabaseUnavailable, match="in time"):
            await read(shared, Call(_ECHO, ("late",)))
        proxy.is_holding = False
        assert await read(shared, Call(_ECHO, ("next",))) == [[("next",)]]


async def test_the_server_stops_a_statement_whose_time_is_up_and_the_connection_is_kept(db: Database) -> None:
    shared = SharedConnection(db, timeout_s=10)
    before = await backend_of(shared)
    assert await read(shared, Call("SHOW statement_timeout")) == [[("10s",)]]
    await read(shared, Call("SET statement_timeout = '20ms'"))
    with pytest.raises(DatabaseUnavailable, match="in time"):
        await read(shared, Call("SELECT pg_sleep(10)"))
    assert await backend_of(shared) == before
    await shared.aclose()


@pytest.mark.parametrize(("planning", "bitmapscan"), [("once", "on"), ("once_by_index", "off")])
async def test_a_connection_that_plans_once_says_so_to_the_server(
    db: Database, planning: Planning, bitmapscan: str
) -> None:
    shared = SharedConnection(db, timeout_s=10, planning=planning)
    assert await read(shared, Call("SHOW plan_cache_mode")) == [[("force_generic_plan",)]]
    assert await read(shared, Call("SHOW enable_bitmapscan")) == [[(bitmapscan,)]]
    assert await read(shared, Call("SHOW enable_seqscan")) == [[("off",)]]
    await shared.aclose()


async def test_running_calls_inside_a_transaction_is_refused(db: Database, shared: SharedConnection) -> None:
    with pytest.raises(AssertionError, match="inside a transaction"):
        async with db.transaction():
            await write(shared, "one")


async def test_ten_thousand_cancelled_callers_leave_every_other_with_their_own_answer(
    shared: SharedConnection,
) -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    before = await backend_of(shared)
    cancelled = answered = number = 0

    async def ask(number: int) -> None:
        nonlocal answered
        texts = [f"{number}-{place}" for place in range(chance.randrange(1, 4))]
        calls = [Call(_ECHO if chance.random() < 0.9 else "SELECT $1::text || 1 / 0", (text,)) for text in texts]
        try:
            rows = await read(shared, *calls)
        except psycopg.errors.DivisionByZero:
            assert any(call.statement != _ECHO for call in calls)
        else:
            assert rows == [[(text,)] for text in texts]
        answered += 1

    while cancelled < 10_000:
        tasks = [asyncio.create_task(ask(number + place)) for place in range(40)]
        number += len(tasks)
        for task in chance.sample(tasks, 25):
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(chance.choice((0, 0, 0.0002)))
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        cancelled += sum(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        assert {type(outcome) for outcome in outcomes} <= {type(None), asyncio.CancelledError}
    assert answered > 1000
    assert await backend_of(shared) == before


async def test_a_caller_cancelled_while_the_connection_opens_leaves_it_to_the_next(shared: SharedConnection) -> None:
    first, second = (asyncio.create_task(read(shared, Call(_ECHO, (text,)))) for text in ("first", "second"))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == [[("second",)]]
    assert first.cancelled()


async def test_closing_fails_those_who_wait_and_the_next_use_opens_another(shared: SharedConnection) -> None:
    before = await backend_of(shared)
    waiting = asyncio.create_task(shared.run(Call("SELECT pg_sleep(10)"), is_repeatable=False))
    await asyncio.sleep(0)
    await shared.aclose()
    with pytest.raises(DatabaseUnavailable):
        await waiting
    assert await backend_of(shared) != before
