"""A database connection that many callers share: prepared statements through libpq, without the driver's cursors.

Source: PostgreSQL, "Asynchronous Command Processing" and "Pipeline Mode" of libpq.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias

import psycopg
from psycopg import sql
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult

from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, TIMEOUT_ERRORS, describe_unavailable

Rows: TypeAlias = list[tuple[Any, ...]]
# The server refused the statement because of what it knew of the session, so it has changed nothing, and another
# session will do: a statement that it forgot, a result type that a migration changed, a server that became a standby.
_STALE_ERRORS: Final = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.ReadOnlySqlTransaction,
)


class Call(NamedTuple):
    """A statement with the parameters `$1`, `$2` and so on, and their values as PostgreSQL writes them.

    The statement casts each parameter, as in `$1::text[]` with an array of `kit.postgres.arrays`.
    """

    statement: LiteralString
    values: tuple[str | None, ...] = ()


class SharedConnection:
    """One connection outside the pool, opened at its first use and replaced after a failure, with many users at once.

    A connection that dies idle is noticed at once.
    """

    def __init__(self, db: Database, *, timeout_s: float) -> None:
        self._db: Final = db
        self._timeout_s: Final = timeout_s
        self._opening: Final = asyncio.Lock()
        self._link: Link | None = None

    async def run(self, *calls: Call, is_repeatable: bool) -> list[Rows]:
        """Run the calls in one round trip, as one transaction, and return the rows of each.

        Each call sees what was committed before it began. The server prepares a statement at its first use. A caller
        that is cancelled leaves the calls running. Calls that are not `is_repeatable` are not repeated once they were
        sent: if their connection is lost or their time runs out, they may be committed all the same.

        Raises: DatabaseUnavailable, also if they take longer than `timeout_s`; the error of the first call that fails.
        """
        link: Link | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    link = await self._open()
                    return await link.send(calls)
                except TIMEOUT_ERRORS:
                    raise
                except (*CONNECTION_ERRORS, *_STALE_ERRORS) as error:
                    if not is_repeatable and isinstance(error, CONNECTION_ERRORS):
                        raise
                    self._replace(link)
                    link = await self._open()
                    return await link.send(calls)
        except TimeoutError as error:
            if link is not None:
                link.lose(error)
            raise describe_unavailable(error) from error
        except (*CONNECTION_ERRORS, psycopg.errors.ReadOnlySqlTransaction) as error:
            raise describe_unavailable(error) from error

    async def aclose(self) -> None:
        """Close the connection; the next use opens another. Calls that are running fail."""
        if self._link is not None:
            self._link.lose(psycopg.OperationalError("closed"))

    def _replace(self, link: "Link | None") -> None:
        """Give the next user another connection; those who wait for answers on this one still get them."""
        if link is not None and link is self._link:
            self._link = None
            link.retire()

    async def _open(self) -> "Link":
        if self._link is None or not self._link.is_alive():
            async with self._opening:
                if self._link is None or not self._link.is_alive():
                    self._link = await self._connect()
        return self._link

    async def _connect(self) -> "Link":
        connection = await self._db.dedicated_connection()
        try:
            # So that no statement runs on after its callers have left.
            limit = sql.Literal(f"{round(self._timeout_s * 1000)}ms")
            await connection.execute(sql.SQL("SET statement_timeout = {}").format(limit))
            return Link(connection)
        except BaseException:
            await connection.close()
            raise


class _Trip:
    """The calls that were sent together, and what the server has answered so far."""

    __slots__ = ("error", "outcome", "preparing_count", "rows")

    def __init__(self, outcome: asyncio.Future[list[Rows]]) -> None:
        self.outcome: Final = outcome
        self.preparing_count = 0
        self.rows: Final[list[Rows]] = []
        self.error: Exception | None = None

    def settle(self) -> None:
        """Give the caller the rows or the first error, unless they have left."""
        if self.outcome.done():
            return
        if self.error is None:
            self.outcome.set_result(self.rows)
        else:
            self.outcome.set_exception(self.error)


class Link:
    """An open connection in pipeline mode, whose answers belong to the trips in the order in which they were sent."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection: Final = connection
        self._pgconn: Final = connection.pgconn
        self._loop: Final = asyncio.get_running_loop()
        self._socket: Final = self._pgconn.socket
        self._loader: Final = Transformer(connection)
        self._names: Final[dict[str, bytes]] = {}
        self._trips: Final[deque[_Trip]] = deque()
        self._is_full = False
        self._is_retired = False
        self._is_lost = False
        self._pgconn.enter_pipeline_mode()
        self._loop.add_reader(self._socket, self._guard, self._read)

    def is_alive(self) -> bool:
        """Return whether the connection can be used, as far as this side knows."""
        if not self._trips and not self._is_lost:
            self._guard(self._pgconn.consume_input)
        return not self._is_lost

    def send(self, calls: Sequence[Call]) -> asyncio.Future[list[Rows]]:
        """Send the calls and return the future of their rows."""
        values = [[_encode(value) for value in call.values] for call in calls]
        trip = _Trip(self._loop.create_future())
        self._trips.append(trip)
        self._guard(self._write, trip, calls, values)
        return trip.outcome

    def retire(self) -> None:
        """Close the connection as soon as nobody waits for an answer."""
        self._is_retired = True
        if not self._trips:
            self.lose(psycopg.OperationalError("retired"))

    def lose(self, error: Exception) -> None:
        """Close the connection, and fail the trips that are not answered."""
        if not self._is_lost:
            self._is_lost = True
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._pgconn.finish()
        while self._trips:
            trip = self._trips.popleft()
            trip.error = psycopg.OperationalError(f"the connection was lost: {error}")
            trip.settle()

    def _guard(self, step: Callable[..., None], *args: Any) -> None:
        """Take a step; if it fails, nobody knows which answers are still to come, so the connection is lost."""
        try:
            step(*args)
        except Exception as error:  # noqa: BLE001 - every waiting caller learns of it
            self.lose(error)

    def _write(self, trip: _Trip, calls: Sequence[Call], values: Sequence[Sequence[bytes | None]]) -> None:
        # Before the first call, so that its failure does not keep the server from preparing the others.
        for statement, _ in calls:
            if statement not in self._names:
                self._names[statement] = name = b"s%d" % len(self._names)
                self._pgconn.send_prepare(name, statement.encode())
                trip.preparing_count += 1
        for (statement, _), encoded in zip(calls, values, strict=True):
            self._pgconn.send_query_prepared(self._names[statement], encoded, result_format=Format.BINARY)
        self._pgconn.pipeline_sync()
        self._flush()

    def _flush(self) -> None:
        """Send what libpq holds back; what the socket does not take, once it does."""
        is_full = bool(self._pgconn.flush())
        if is_full and not self._is_full:
            self._loop.add_writer(self._socket, self._guard, self._flush)
        elif self._is_full and not is_full:
            self._loop.remove_writer(self._socket)
        self._is_full = is_full

    def _read(self) -> None:
        self._pgconn.consume_input()
        while self._trips and not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            if result is not None:
                self._take(result)
            elif self._pgconn.status != ConnStatus.OK:
                raise psycopg.OperationalError("closed by the server")
        if self._trips:
            # uvloop ends a reader after an error of the socket, which libpq meets only when it reads again.
            self._loop.remove_reader(self._socket)
            self._loop.add_reader(self._socket, self._guard, self._read)
        elif self._is_retired:
            self.lose(psycopg.OperationalError("retired"))

    def _take(self, result: PGresult) -> None:
        """Add one result to the oldest trip, or end it."""
        trip = self._trips[0]
        match result.status:
            case ExecStatus.PIPELINE_SYNC:
                self._trips.popleft().settle()
            case ExecStatus.TUPLES_OK:
                if trip.error is None and not trip.outcome.done():
                    self._load(trip, result)
            case ExecStatus.FATAL_ERROR:
                trip.error = psycopg.errors.error_from_result(result)
            case ExecStatus.COMMAND_OK if trip.preparing_count:
                trip.preparing_count -= 1
            case ExecStatus.COMMAND_OK:
                trip.rows.append([])
            case status:
                assert status == ExecStatus.PIPELINE_ABORTED, "a statement that this connection is not for"

    def _load(self, trip: _Trip, result: PGresult) -> None:
        try:
            self._loader.set_pgresult(result)
            trip.rows.append(self._loader.load_rows(0, result.ntuples, tuple))
        except Exception as error:  # noqa: BLE001 - a value that cannot be read concerns this caller alone
            trip.error = error


def _encode(value: str | None) -> bytes | None:
    """Return the value as libpq takes it, which would end it at a NUL.

    Raises: DataError.
    """
    if value is not None and "\0" in value:
        raise psycopg.DataError("a text of PostgreSQL cannot contain NUL")
    return None if value is None else value.encode()
