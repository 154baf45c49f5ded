"""An open connection in libpq's pipeline mode: prepared statements without the driver's cursors, for several callers.

Source: PostgreSQL, "Asynchronous Command Processing" and "Pipeline Mode" of libpq.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from soundmark.kit.postgres.sessions import HostsConnection
from soundmark.kit.postgres.traced_cursor import describe_span
from soundmark.kit.postgres.transaction import SESSION_ERRORS
from soundmark.kit.tracing.spans import Span, begin_child, is_recorded, is_recording

Rows: TypeAlias = list[tuple[Any, ...]]
# The server refused the statement because of what it knew of the session, so it has changed nothing, and another
# session will do: a statement that it forgot, a result type that a migration changed, a server that became a standby.
STALE_ERRORS: Final = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.FeatureNotSupported,
    *SESSION_ERRORS,
)


class Call(NamedTuple):
    """A statement with the parameters `$1`, `$2` and so on, and their values as PostgreSQL writes them.

    The statement casts each parameter whose type nothing else tells, as in `$1::text[]` with an array of
    `kit.postgres.arrays`. One that is not `is_kept`, because its text differs each time, is not prepared.
    """

    statement: LiteralString
    values: tuple[str | None, ...] = ()
    is_kept: bool = True


class _Trip:
    """The calls that were sent together, and what the server has answered so far."""

    __slots__ = ("calls", "error", "outcome", "preparing_count", "rows", "spans")

    def __init__(self, calls: Sequence[Call], outcome: asyncio.Future[list[Rows]]) -> None:
        self.calls: Final = calls
        self.outcome: Final = outcome
        self.preparing_count = 0
        self.rows: Final[list[Rows]] = []
        self.error: Exception | None = None
        self.spans: deque[Span] | None = None  # Those of the calls that are not answered.

    def settle(self) -> None:
        """Give the caller the rows or the first error, unless they have left."""
        while self.spans:
            self.spans.popleft().end(None if self.error is None else type(self.error).__name__)
        if self.outcome.done():
            return
        if self.error is None:
            self.outcome.set_result(self.rows)
        else:
            self.outcome.set_exception(self.error)


class Link:
    """An open connection in pipeline mode, whose answers belong to the trips in the order in which they were sent."""

    def __init__(
        self,
        connection: HostsConnection,
        statements: Iterable[LiteralString] = (),
        *,
        prepares: bool = True,
    ) -> None:
        """Make the server prepare `statements` at once, without waiting for it; others are prepared at their use.

        Without `prepares`, because a pooler stands between, none is prepared.
        """
        self._connection: Final = connection
        self._prepares: Final = prepares
        self._pgconn: Final = connection.pgconn
        self._loop: Final = asyncio.get_running_loop()
        self._socket: Final = self._pgconn.socket
        self._loader: Final = Transformer(connection)
        self._names: Final[dict[LiteralString, bytes]] = {}
        self._columns: Final[dict[LiteralString, tuple[str, ...]]] = {}
        self._trips: Final[deque[_Trip]] = deque()
        self._is_full = False
        self._is_retired = False
        self._is_lost = False
        self._is_traced: Final = is_recording()
        self._pgconn.enter_pipeline_mode()
        self._loop.add_reader(self._socket, self._guard, self._read)
        trip = _Trip((), self._loop.create_future())
        trip.outcome.cancel()
        self._trips.append(trip)
        self._guard(self._write, trip, [Call(statement) for statement in statements], ())

    def is_alive(self) -> bool:
        """Return whether the connection can be used, as far as this side knows."""
        if not self._trips and not self._is_lost:
            self._guard(self._pgconn.consume_input)
        return not self._is_lost

    def is_in_transaction(self) -> bool | None:
        """Return whether a transaction has begun and not ended; None if that cannot be said, or answers are to come."""
        if self._trips or self._is_lost:
            return None
        return self._pgconn.transaction_status != TransactionStatus.IDLE

    @property
    def prepared(self) -> Collection[LiteralString]:
        """The statements that the server was told to prepare."""
        return self._names.keys()

    def columns_of(self, statement: LiteralString) -> tuple[str, ...]:
        """Return the names of the columns that `statement`, which was answered before, returns."""
        return self._columns[statement]

    def send(self, calls: Sequence[Call]) -> asyncio.Future[list[Rows]]:
        """Send the calls and return the future of their rows."""
        values = [[_encode(value) for value in call.values] for call in calls]
        trip = _Trip(calls, self._loop.create_future())
        if self._is_traced and is_recorded():
            trip.spans = _begin_spans(calls)
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

    def _write(self, trip: _Trip, prepared: Sequence[Call], values: Sequence[Sequence[bytes | None]]) -> None:
        # Before the first call, so that its failure does not keep the server from preparing the others.
        for statement, _, is_kept in prepared:
            if self._prepares and is_kept and statement not in self._names:
                self._names[statement] = name = b"s%d" % len(self._names)
                self._pgconn.send_prepare(name, statement.encode())
                trip.preparing_count += 1
        for (statement, *_), encoded in zip(trip.calls, values, strict=True):
            if statement in self._names:
                self._pgconn.send_query_prepared(self._names[statement], encoded, result_format=Format.BINARY)
            else:
                self._pgconn.send_query_params(statement.encode(), encoded, result_format=Format.BINARY)
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
                self._connection.standbys.require()
                self._trips.popleft().settle()
            case ExecStatus.TUPLES_OK:
                if trip.error is None and not trip.outcome.done():
                    self._load(trip, result)
                if trip.spans:
                    trip.spans.popleft().end(None)
            case ExecStatus.FATAL_ERROR:
                trip.error = psycopg.errors.error_from_result(result)
            case ExecStatus.COMMAND_OK if trip.preparing_count:
                trip.preparing_count -= 1
            case ExecStatus.COMMAND_OK:
                trip.rows.append([])
                if trip.spans:
                    trip.spans.popleft().end(None)
            case status:
                assert status == ExecStatus.PIPELINE_ABORTED, "a statement that this connection is not for"

    def _load(self, trip: _Trip, result: PGresult) -> None:
        try:
            self._loader.set_pgresult(result)
            statement = trip.calls[len(trip.rows)].statement
            if statement not in self._columns:
                names = (result.fname(number) for number in range(result.nfields))
                self._columns[statement] = tuple(name.decode() for name in names if name is not None)
            trip.rows.append(self._loader.load_rows(0, result.ntuples, tuple))
        except Exception as error:  # noqa: BLE001 - a value that cannot be read concerns this caller alone
            trip.error = error


def _begin_spans(calls: Sequence[Call]) -> deque[Span]:
    """Begin the spans of calls that are sent now. The text of one that is not kept was put together."""
    is_pipelined = len(calls) > 1
    begun = [
        begin_child(*describe_span(statement if is_kept else statement.encode(), is_pipelined=is_pipelined))
        for statement, _, is_kept in calls
    ]
    return deque(filter(None, begun))


def _encode(value: str | None) -> bytes | None:
    """Return the value as libpq takes it, which would end it at a NUL.

    Raises: DataError.
    """
    if value is not None and "\0" in value:
        raise psycopg.DataError("a text of PostgreSQL cannot contain NUL")
    return None if value is None else value.encode()
