"""Statements through libpq's pipeline, gathered into few round trips, without the driver's cursors."""

import contextlib
import functools
import re
import types
from collections.abc import AsyncIterator, Awaitable, Coroutine, Generator, Sequence
from datetime import date
from typing import Any, Final, Generic, LiteralString, Protocol, TypeVar, cast

from soundmark.kit.postgres.arrays import bytes_array, text_array
from soundmark.kit.postgres.link import Call, Rows
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, Params, Send, describe_unavailable

R = TypeVar("R")
T = TypeVar("T")

COMMIT: Final = Call("COMMIT")
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")


class Trips(Protocol):
    """What sends the statements: a `Link`, or one on which the first of them begin a transaction."""

    def send(self, calls: Sequence[Call]) -> Awaitable[list[Rows]]:
        """Send the calls in one round trip, and return the rows of each."""
        ...

    def columns_of(self, statement: LiteralString) -> tuple[str, ...]:
        """Return the names of the columns that `statement`, which was answered before, returns."""
        ...


class PipelinedTx:
    """A transaction that takes the same statements as `Tx`, at a tenth of its cost.

    Outside of `pipeline` and `ending`, each statement is a round trip. On a `KeptConnection`, the user begins the
    transaction; until then, each round trip is one of its own.
    """

    def __init__(self, trips: Trips) -> None:
        self._trips: Final = trips
        self._calls: list[Call] | None = None  # Those that the next round trip sends, in a block of several.
        self._answers: Sequence[Rows] = ()
        self.is_over = False
        self.announced: Final[set[str]] = set()

    def announce(self, name: str) -> None:
        """Make `Database.take_announced` return `name` after the transaction has ended."""
        self.announced.add(name)

    async def all(
        self, record: type[R], statement: LiteralString, params: Params | None = None, *, plan_anew: bool = False
    ) -> list[R]:
        """Return every row as a `record`, whose fields have the names of the columns; `plan_anew` is as in `Tx.all`."""
        call = _call(statement, params, is_kept=not plan_anew)
        rows = await self._answer(call)
        columns = self._trips.columns_of(call.statement)
        if columns == getattr(record, "__match_args__", ()):  # The parameters of a dataclass, in their order.
            return [record(*row) for row in rows]
        return [record(**dict(zip(columns, row, strict=True))) for row in rows]

    async def one_or_none(self, record: type[R], statement: LiteralString, params: Params | None = None) -> R | None:
        """Return the one row, or None. Several rows fail an assertion."""
        rows = await self.all(record, statement, params)
        assert len(rows) <= 1, "a statement for one row found several"
        return rows[0] if rows else None

    async def value(self, statement: LiteralString, params: Params | None = None) -> Any:
        """Return the first column of the one row; None if there is no row."""
        rows = await self._answer(_call(statement, params))
        return rows[0][0] if rows else None

    async def rows(self, statement: LiteralString, params: Params | None = None) -> Rows:
        """Return every row as a tuple."""
        return await self._answer(_call(statement, params))

    async def run(self, statement: LiteralString, params: Params | None = None) -> None:
        """Execute a statement that returns no rows."""
        call = _call(statement, params)
        if self._calls is None:
            await self._trips.send([call])
        else:
            self._calls.append(call)

    @contextlib.asynccontextmanager
    async def pipeline(self, *, commits: bool = False) -> AsyncIterator[Send]:
        """Send the statements of the block in one round trip; with `commits`, the transaction ends with it.

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
            self._answers = await self._trips.send([*calls, COMMIT] if commits else calls)
            self.is_over = commits
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
        try:
            yield
            await self._trips.send([*calls, COMMIT])
        except CONNECTION_ERRORS as error:
            raise describe_unavailable(error) from error
        finally:
            self._calls = None
        self.is_over = True

    async def _answer(self, call: Call) -> Rows:
        if self._calls is None:
            (rows,) = await self._trips.send([call])
            return rows
        place = len(self._calls)
        self._calls.append(call)
        await _until_answered()
        return self._answers[place]


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


@types.coroutine
def _until_answered() -> Generator[None, None, None]:
    yield


@functools.cache
def _number_parameters(statement: LiteralString) -> tuple[LiteralString, tuple[str, ...]]:
    """Return the statement with numbers in place of the names of its parameters, and the names in this order."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(statement)))
    numbered = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", statement)
    assert "%" not in numbered, "parameters have names, and no statement has a percent sign of its own"
    return numbered, names


def _call(statement: LiteralString, params: Params | None, *, is_kept: bool = True) -> Call:
    numbered, names = _number_parameters(statement)
    values = tuple([_write_value(params[name]) for name in names]) if params is not None else ()
    return Call(numbered, values, is_kept)


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
