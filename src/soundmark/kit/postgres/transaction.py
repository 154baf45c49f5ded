"""An open transaction, with which steps and store functions execute statements, and its failures."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, LiteralString, Protocol, TypeVar

import psycopg
import structlog
from psycopg.rows import class_row

from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.sessions import HostsConnection

Params = Mapping[str, Any]
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
# These are OperationalErrors too, but the server answered and the connection is sound.
TIMEOUT_ERRORS: Final = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)
# The session became read-only, because its server is now a standby, or PostgreSQL ended it before the commit, by a time
# limit that may be the operator's. Nothing was changed, and another session may do.
SESSION_ERRORS: Final = (
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
)
# With SQLSTATE 57P0x, a server that stops or starts.
CONNECTION_ERRORS: Final = (psycopg.OperationalError, psycopg.InterfaceError, *SESSION_ERRORS)
# Of SQLSTATE: the server lacks something, such as space on its disk, or its system fails.
_SERVER_FAULTS: Final = ("53", "58")
# The server answered, and the transaction left nothing; unless it is one of the errors above.
REFUSED_ERRORS: Final = (psycopg.DatabaseError,)

_log: Final = structlog.get_logger()


class Tx:
    """An open transaction. Steps and store functions take one as an argument; only a command opens one."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection: Final = connection
        self._synced: asyncio.Event | None = None
        self._cursors_count = 0
        self.is_over = False
        self.announced: Final[set[str]] = set()

    @property
    def connection(self) -> psycopg.AsyncConnection[Any]:
        """The connection itself, for a library that takes part in the transaction. It must not commit."""
        return self._connection

    def announce(self, name: str) -> None:
        """Make `Database.take_announced` return `name` after the transaction has ended."""
        self.announced.add(name)

    async def all(
        self, record: type[R], statement: LiteralString, params: Params | None = None, *, plan_anew: bool = False
    ) -> list[R]:
        """Return every row as a `record`, whose fields have the names of the columns.

        With `plan_anew`, the server never keeps the statement's plan, which then always fits the parameters.
        """
        async with self._connection.cursor(row_factory=class_row(record)) as cursor:
            await cursor.execute(statement, params, prepare=False if plan_anew else None)
            await self._until_synced()
            return await cursor.fetchall()

    async def pages(
        self, record: type[R], statement: LiteralString, params: Params | None = None, *, rows_max: int
    ) -> AsyncGenerator[list[R], None]:
        """Yield the rows as `record`s, up to `rows_max` at a time, from a cursor of the server, so that few are held.

        Other statements may run between two pages. The caller closes the generator within the transaction (`aclosing`).
        """
        self._cursors_count += 1
        name = f"pages_{self._cursors_count}"
        async with self._connection.cursor(name, row_factory=class_row(record)) as cursor:
            await cursor.execute(statement, params, binary=True)
            while rows := await cursor.fetchmany(rows_max):
                yield rows

    async def one_or_none(self, record: type[R], statement: LiteralString, params: Params | None = None) -> R | None:
        """Return the one row, or None. Several rows fail an assertion."""
        rows = await self.all(record, statement, params)
        assert len(rows) <= 1, "a statement for one row found several"
        return rows[0] if rows else None

    async def value(self, statement: LiteralString, params: Params | None = None) -> Any:
        """Return the first column of the one row; None if there is no row."""
        cursor = await self._connection.execute(statement, params)
        await self._until_synced()
        row = await cursor.fetchone()
        return None if row is None else row[0]

    async def rows(self, statement: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Return every row as a tuple, for the hot paths: prepared, and in the binary format."""
        cursor = await self._connection.execute(statement, params, prepare=True, binary=True)
        await self._until_synced()
        return await cursor.fetchall()

    async def run(self, statement: LiteralString, params: Params | Sequence[Any] | None = None) -> int:
        """Execute a statement that returns no rows; return the number of rows it touched."""
        cursor = await self._connection.execute(statement, params)
        await self._until_synced()
        return cursor.rowcount

    async def run_many(self, statement: LiteralString, rows: Sequence[Params]) -> None:
        """Execute one statement for each of `rows`, in one round trip."""
        async with self._connection.cursor() as cursor:
            await cursor.executemany(statement, rows)

    async def copy(self, statement: LiteralString, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Send many rows of these types with a `COPY … FROM STDIN (FORMAT BINARY)`, which is faster than an `INSERT`.

        PostgreSQL refuses it under row-level security.
        """
        async with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                await copy.write_row(row)

    @contextlib.asynccontextmanager
    async def pipeline(self) -> AsyncIterator["Send"]:
        """Send the statements of the block in one round trip.

        `send` takes a coroutine that executes one statement, such as a call of a store function, and returns its
        answer, whose result is there after the block. The server executes the statements in the order in which they
        were sent. Each sees what was committed before it began, as if it had been sent alone.

        Raises: the first failure.
        """
        tasks: list[asyncio.Task[Any]] = []
        self._synced = synced = asyncio.Event()

        def send(statement: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
            task = asyncio.create_task(statement)
            tasks.append(task)
            return task

        try:
            async with self._connection.pipeline() as pipeline:
                yield send
                # The connection serves its users in the order of arrival: first these tasks, then the sync.
                await asyncio.sleep(0)
                await pipeline.sync()
        except BaseException as error:
            for task in tasks:
                task.cancel()
            raised = [error, *await asyncio.gather(*tasks, return_exceptions=True)]
            if isinstance(error, psycopg.Error):
                raise _find_cause(raised) from None
            raise
        finally:
            self._synced = None
            synced.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            task.result()

    @contextlib.asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """Send the statements of the block and the commit in one round trip; none of them returns anything.

        Use it last in a transaction.

        Raises: DatabaseUnavailable if the connection is lost. The transaction may be committed all the same, so the
            caller must not repeat it.
        """
        try:
            async with self._connection.pipeline() as pipeline:
                yield
                await self._connection.execute("COMMIT")
                await pipeline.sync()
            if isinstance(self._connection, HostsConnection):  # Tests and benchmarks have others.
                self._connection.standbys.require()
        except CONNECTION_ERRORS as error:
            raise describe_unavailable(error) from error
        self.is_over = True

    async def _until_synced(self) -> None:
        """Wait for the answers to a pipeline; do nothing outside of one."""
        if self._synced is not None:
            await self._synced.wait()


class AnyTx(Protocol):
    """What store functions take: a `Tx`, or a `PipelinedTx` of `kit.postgres.pipelined_tx`. Its methods are theirs."""

    def announce(self, name: str) -> None: ...

    async def all(
        self, record: type[R], statement: LiteralString, params: Params | None = None, *, plan_anew: bool = False
    ) -> list[R]: ...

    async def one_or_none(
        self, record: type[R], statement: LiteralString, params: Params | None = None
    ) -> R | None: ...

    async def value(self, statement: LiteralString, params: Params | None = None) -> Any: ...

    async def rows(self, statement: LiteralString, params: Params | None = None) -> list[tuple[Any, ...]]: ...

    async def run(self, statement: LiteralString, params: Params | None = None) -> object: ...


class Answer(Protocol[T_co]):
    """The answer to a statement that was sent in a pipeline."""

    def result(self) -> T_co:
        """Return what the coroutine returned, after the block."""
        ...


class Send(Protocol):
    """The function that `pipeline` yields."""

    def __call__(self, statement: Coroutine[Any, Any, T], /) -> Answer[T]:
        """Send the one statement that the coroutine executes."""
        ...


def is_lost(error: BaseException) -> bool:
    """Return whether the connection on which `error` was raised cannot be used any more."""
    cause = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
    return isinstance(cause, CONNECTION_ERRORS) and not isinstance(cause, TIMEOUT_ERRORS)


def describe_unavailable(error: Exception) -> DatabaseUnavailable:
    """Return the problem for a lost connection, or for a statement that took too long."""
    if isinstance(error, (*TIMEOUT_ERRORS, TimeoutError)):
        return DatabaseUnavailable("The database did not answer in time.")
    if isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(_SERVER_FAULTS):
        _log.error("database_failed", error=type(error).__name__)  # It answers, so that nothing else would say why.
    return DatabaseUnavailable()


def _find_cause(raised: Sequence[object]) -> psycopg.Error:
    """Return why a pipeline failed.

    psycopg raises the cause in one statement of the pipeline, and only `PipelineAborted` in the others.
    """
    errors = [error for error in raised if isinstance(error, psycopg.Error)]
    return next((error for error in errors if not isinstance(error, psycopg.errors.PipelineAborted)), errors[0])
