"""Transactions of few round trips: prepared statements through libpq's pipeline, without the driver's cursors."""

import asyncio
import contextlib
import functools
import re
import types
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator, Sequence
from datetime import date
from typing import Any, Final, Generic, LiteralString, Protocol, TypeVar, cast

import psycopg
from psycopg import sql

from soundmark.kit import open_transaction
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.arrays import bytes_array, text_array
from soundmark.kit.postgres.database import (
    ACQUIRE_TIMEOUT_S,
    ATTEMPTS,
    Database,
    remove_content,
)
from soundmark.kit.postgres.link import STALE_ERRORS, Call, Link, Rows
from soundmark.kit.postgres.sessions import CONNECT_TIMEOUT_S, STATEMENT_TIMEOUT_S
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, TIMEOUT_ERRORS, Params, describe_unavailable

R = TypeVar("R")
T = TypeVar("T")

_RESTING_MAX_S: Final = 60.0
# After the server's own limit for a statement, which leaves the connection sound.
_TRIP_TIMEOUT_S: Final = STATEMENT_TIMEOUT_S + CONNECT_TIMEOUT_S
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_BEGIN: Final = Call("BEGIN ISOLATION LEVEL READ COMMITTED")
_COMMIT: Final = Call("COMMIT")
_ROLLBACK: Final = Call("ROLLBACK")


class PipelinedTransactions:
    """Connections outside the pool, `size` at most, each of which one transaction has for its time.

    The one that was used last is used next, so that few are open, and those have their plans; those that have rested
    for a minute are closed when another comes to rest. A new connection prepares what the others have prepared. All are
    closed with `db`.
    """

    def __init__(self, db: Database, *, size: int) -> None:
        self._db: Final = db
        self._free: Final = asyncio.Semaphore(size)
        self._resting: Final[deque[tuple[Link, float]]] = deque()
        self._links: Final[set[Link]] = set()
        self._statements: dict[LiteralString, None] = {}
        db.closing.append(self.aclose)

    @contextlib.asynccontextmanager
    async def transaction(self, *, tenant: str) -> AsyncIterator["PipelinedTx"]:
        """Run a read-committed transaction: commit when the block ends, roll back when it raises.

        It begins with its first statements, in their round trip. Row-level security shows it the rows of `tenant`. A
        transaction inside another, or open across a call to another component, is an assertion failure.

        Raises: DatabaseUnavailable.
        """
        open_transaction.assert_no_transaction("a transaction")
        await self._take_place()
        token = open_transaction.is_open.set(True)
        tx: PipelinedTx | None = None
        try:
            tx = PipelinedTx(self, await self.open_link(), tenant)
            yield tx
            await tx.commit()
        except (*CONNECTION_ERRORS, *STALE_ERRORS) as error:
            raise describe_unavailable(error) from error
        except psycopg.DatabaseError as error:
            remove_content(error)
            raise
        finally:
            open_transaction.is_open.reset(token)
            try:
                if tx is not None:
                    self._db.note_announced(tx.announced)
                    await tx.end()
                    self._rest(tx.link)
            finally:
                self._free.release()

    async def open_link(self) -> Link:
        """Return the connection that was used last and is alive, or a new one."""
        while self._resting:
            link, _ = self._resting.pop()
            if link.is_alive():
                return link
            self._links.discard(link)
        connection = await self._db.dedicated_connection()
        link = Link(connection, self._statements, prepares=self._db.session.sends_startup)
        self._links.add(link)
        return link

    def lose(self, link: Link, error: Exception) -> None:
        """Close a connection, whose transaction the server then rolls back."""
        self._links.discard(link)
        link.lose(error)

    async def aclose(self) -> None:
        """Close every connection; transactions that are open fail, and the next one opens another."""
        for link in list(self._links):
            self.lose(link, psycopg.OperationalError("closed"))
        self._resting.clear()

    async def _take_place(self) -> None:
        """Wait until fewer than `size` transactions are open.

        Raises: DatabaseUnavailable if that takes too long.
        """
        try:
            async with asyncio.timeout(ACQUIRE_TIMEOUT_S if self._free.locked() else None):
                await self._free.acquire()
        except TimeoutError as error:
            raise DatabaseUnavailable from error

    def _rest(self, link: Link) -> None:
        """Keep a connection without a transaction for the next one, and close any other."""
        now_s = asyncio.get_running_loop().time()
        if link.is_in_transaction() is not False:
            self.lose(link, psycopg.OperationalError("not at rest"))
            return
        if len(link.prepared) > len(self._statements):
            self._statements = dict.fromkeys(link.prepared)
        self._resting.append((link, now_s))
        while self._resting[0][1] < now_s - _RESTING_MAX_S:
            self.lose(self._resting.popleft()[0], psycopg.OperationalError("rested"))


class PipelinedTx:
    """An open transaction, which takes the same statements as `Tx`."""

    def __init__(self, connections: PipelinedTransactions, link: Link, tenant: str) -> None:
        self._connections: Final = connections
        self._tenant: Final = tenant
        self.link = link
        self._has_begun = False
        self._is_over = False
        self._is_ending = False
        self._calls: list[Call] | None = None  # Those that the next round trip sends, in a block of several.
        self._answers: Sequence[Rows] = ()
        self.announced: Final[set[str]] = set()

    def announce(self, name: str) -> None:
        """Make `Database.take_announced` return `name` after the transaction has ended."""
        self.announced.add(name)

    async def all(self, record: type[R], statement: LiteralString, params: Params | None = None) -> list[R]:
        """Return every row as a `record`, whose fields have the names of the columns."""
        rows, columns = await self._answer(statement, params)
        return [record(**dict(zip(columns, row, strict=True))) for row in rows]

    async def one_or_none(self, record: type[R], statement: LiteralString, params: Params | None = None) -> R | None:
        """Return the one row, or None. Several rows fail an assertion."""
        rows = await self.all(record, statement, params)
        assert len(rows) <= 1, "a statement for one row found several"
        return rows[0] if rows else None

    async def value(self, statement: LiteralString, params: Params | None = None) -> Any:
        """Return the first column of the one row; None if there is no row."""
        rows, _ = await self._answer(statement, params)
        return rows[0][0] if rows else None

    async def run(self, statement: LiteralString, params: Params | None = None) -> int:
        """Execute a statement that returns no rows, and return -1: nobody counts those that it touched."""
        call = _call(statement, params)
        if self._calls is None:
            await self._make_trip([call])
        else:
            self._calls.append(call)
        return -1

    @contextlib.asynccontextmanager
    async def pipeline(self) -> AsyncIterator["_Send"]:
        """Send the statements of the block in one round trip.

        `send` takes a coroutine that executes one statement, such as a call of a store function, and returns its
        answer, whose result is there after the block. The server executes the statements in the order in which they
        were sent. Each sees what was committed before it began, as if it had been sent alone.

        Raises: the first failure.
        """
        steps: list[_Step[Any]] = []
        calls: list[Call] = []
        self._calls = calls

        def send(statement: Coroutine[Any, Any, T]) -> _Step[T]:
            step = _Step(statement)
            steps.append(step)
            step.go_on()
            return step

        try:
            yield send
            self._answers = await self._make_trip(calls)
            for step in steps:
                step.go_on()
                assert step.is_over, "a coroutine in a pipeline executes one statement"
        finally:
            self._calls = None
            for step in steps:
                step.close()

    @contextlib.asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """Send the statements of the block and the commit in one round trip; none of them returns anything.

        Use it last in a transaction.

        Raises: DatabaseUnavailable if the connection is lost. The transaction may be committed all the same, so the
            caller must not repeat it.
        """
        calls: list[Call] = []
        self._calls = calls
        self._is_ending = True
        try:
            yield
            await self._make_trip([*calls, _COMMIT])
        finally:
            self._calls = None
        self._is_over = True

    async def commit(self) -> None:
        """Commit, unless `ending` has done so."""
        if self._has_begun and not self._is_over:
            await self._make_trip([_COMMIT])

    async def end(self) -> None:
        """Roll back what was not committed; the connection is closed if that fails."""
        if self.link.is_in_transaction():
            with contextlib.suppress(psycopg.Error):
                await self.link.send([_ROLLBACK])

    async def _answer(self, statement: LiteralString, params: Params | None) -> tuple[Rows, tuple[str, ...]]:
        call = _call(statement, params)
        if self._calls is None:
            (rows,) = await self._make_trip([call])
        else:
            place = len(self._calls)
            self._calls.append(call)
            await _until_answered()
            rows = self._answers[place]
        return rows, self.link.columns_of(call.statement)

    async def _make_trip(self, calls: Sequence[Call]) -> list[Rows]:
        """Return the rows of the calls, of which the first ones begin the transaction.

        If the connection turns out to be lost or stale then, nothing has been changed, and it is replaced.
        """
        if self._has_begun:
            return await self._send(calls)
        begin = (_BEGIN, _set_tenant(self._tenant))
        for _ in range(ATTEMPTS):
            try:
                answers = await self._send((*begin, *calls))
            except TIMEOUT_ERRORS:
                raise
            except (*CONNECTION_ERRORS, *STALE_ERRORS) as error:
                self._connections.lose(self.link, error)
                if self._is_ending and not isinstance(error, STALE_ERRORS):
                    raise
                self.link = await self._connections.open_link()
            else:
                self._has_begun = True
                return answers[len(begin) :]
        raise DatabaseUnavailable

    async def _send(self, calls: Sequence[Call]) -> list[Rows]:
        try:
            async with asyncio.timeout(_TRIP_TIMEOUT_S):
                return await self.link.send(calls)
        except TimeoutError as error:
            self._connections.lose(self.link, error)
            raise describe_unavailable(error) from error
        except STALE_ERRORS as error:
            self._connections.lose(self.link, error)
            raise


class _Step(Generic[T]):
    """A coroutine that pauses once, between its statement and the answer."""

    __slots__ = ("_coroutine", "_result", "is_over")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine: Final = coroutine
        self.is_over = False
        self._result: T | None = None

    def go_on(self) -> None:
        """Run the coroutine up to its pause, or from there to its end."""
        if self.is_over:
            return
        try:
            self._coroutine.send(None)
        except StopIteration as end:
            self.is_over, self._result = True, end.value

    def result(self) -> T:
        """Return what the coroutine returned."""
        assert self.is_over, "the result is there after the block"
        return cast("T", self._result)

    def close(self) -> None:
        """Give the coroutine up, if it is not over."""
        self._coroutine.close()


class _Send(Protocol):
    """The function that `PipelinedTx.pipeline` yields."""

    def __call__(self, statement: Coroutine[Any, Any, T], /) -> _Step[T]:
        """Send the one statement that the coroutine executes, and return its answer."""
        ...


@types.coroutine
def _until_answered() -> Generator[None, None, None]:
    yield


@functools.lru_cache(maxsize=1024)
def _set_tenant(tenant: str) -> Call:
    """Return the setting that ends with the transaction, as text: `Database` says why it is not `set_config`."""
    statement = sql.SQL("SET LOCAL soundmark.tenant TO {}").format(tenant).as_string(None)
    return Call(statement, is_kept=False)


@functools.cache
def _number_parameters(statement: LiteralString) -> tuple[LiteralString, tuple[str, ...]]:
    """Return the statement with numbers in place of the names of its parameters, and the names in this order."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(statement)))
    numbered = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", statement)
    assert "%" not in numbered, "parameters have names, and no statement has a percent sign of its own"
    return numbered, names


def _call(statement: LiteralString, params: Params | None) -> Call:
    numbered, names = _number_parameters(statement)
    return Call(numbered, tuple([_write_value(params[name]) for name in names]) if params is not None else ())


def _write_value(value: object) -> str | None:
    """Return a value as PostgreSQL writes it."""
    match value:
        case None | str():
            return value
        case bool() | int():
            return str(value).lower()
        case bytes():
            return rf"\x{value.hex()}"
        case date():  # A datetime too.
            return value.isoformat()
        case list() if value and isinstance(value[0], bytes):
            return bytes_array(value)
        case list():
            return text_array(value)
        case _:
            raise AssertionError(f"no statement has a parameter of the type {type(value).__name__}")
