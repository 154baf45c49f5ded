"""A database connection that one owner keeps for itself: transactions through libpq, without the driver's cursors."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, LiteralString, TypeVar

import psycopg

from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.link import Call, Link, Rows
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, TIMEOUT_ERRORS, Send, Tx, describe_unavailable

_CANCEL_TIMEOUT_S: Final = 1.0

T = TypeVar("T")


class KeptTx:
    """Statements on a kept connection: what `Tx` has for the hot paths, at a tenth of its cost.

    Outside of `pipeline` and `ending`, each statement is a round trip. Parameters are `%s`, and texts that the
    statement casts.
    """

    def __init__(self, link: Link) -> None:
        self._link: Final = link
        self._gathered: list[Call] | None = None
        self._synced: asyncio.Event | None = None
        self._answers: list[Rows] = []

    async def rows(self, statement: LiteralString, *values: str) -> Rows:
        """Return every row as a tuple."""
        call = Call(_number_parameters(statement), values)
        if self._gathered is None:
            (rows,) = await self._link.send([call])
            return rows
        place = len(self._gathered)
        self._gathered.append(call)
        if self._synced is None:
            return []  # Nobody waits for anything but the commit.
        await self._synced.wait()
        return self._answers[place]

    async def run(self, statement: LiteralString, params: Sequence[str] | None = None) -> None:
        """Execute a statement that returns no rows."""
        await self.rows(statement, *(params or ()))

    @contextlib.asynccontextmanager
    async def pipeline(self) -> AsyncIterator[Send]:
        """Send the statements of the block in one round trip, as `Tx.pipeline` does.

        Raises: the first failure.
        """
        tasks: list[asyncio.Task[Any]] = []
        calls = self._gathered = []
        synced = self._synced = asyncio.Event()

        def send(statement: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
            task = asyncio.create_task(statement)
            tasks.append(task)
            return task

        try:
            yield send
            await asyncio.sleep(0)  # Each task gathers its statement.
            self._answers = await self._link.send(calls)
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
        finally:
            self._gathered = self._synced = None
            synced.set()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            task.result()

    @contextlib.asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """Send the statements of the block and the commit in one round trip, as `Tx.ending` does.

        Raises: DatabaseUnavailable if the connection is lost. The transaction may be committed all the same, so the
            caller must not repeat it.
        """
        calls = self._gathered = []
        try:
            yield
            await self._link.send([*calls, Call("COMMIT")])
        except CONNECTION_ERRORS as error:
            raise describe_unavailable(error) from error
        finally:
            self._gathered = None


class KeptConnection:
    """One connection outside the pool, opened at its first use and replaced after every failure.

    It has one user at a time, such as the batches of one queue. `prepare` gets each new connection first.
    """

    def __init__(
        self, db: Database, *, timeout_s: float, prepare: Callable[[Tx], Awaitable[None]] | None = None
    ) -> None:
        self._db: Final = db
        self._timeout_s: Final = timeout_s
        self._prepare: Final = prepare
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._link: Link | None = None

    async def run(self, work: Callable[[KeptTx], Awaitable[T]]) -> T:
        """Run `work` with the connection in autocommit mode, and return its result; it may begin a transaction itself.

        If `work` raises because the connection was lost, it runs again on a new connection. If it may have committed by
        then, it must raise something else, as `KeptTx.ending` does.

        Raises: DatabaseUnavailable, also if `work` takes longer than `timeout_s`; whatever else `work` raises.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    return await work(await self._open())
                except TIMEOUT_ERRORS:
                    raise
                except CONNECTION_ERRORS:
                    await self.aclose()
                    return await work(await self._open())
        except CONNECTION_ERRORS as error:
            await self.aclose()
            raise describe_unavailable(error) from error
        except (TimeoutError, asyncio.CancelledError) as error:
            await self._cancel()
            if isinstance(error, TimeoutError):
                raise describe_unavailable(error) from error
            raise
        except BaseException:
            # If its transaction is still open, the server rolls it back.
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close the connection; the next use opens another."""
        link, self._link, self._connection = self._link, None, None
        if link is not None:
            link.lose(psycopg.OperationalError("closed"))

    async def _cancel(self) -> None:
        """Stop what the server is doing for us, as far as it is not done, and close the connection."""
        try:
            if self._connection is not None:
                with contextlib.suppress(psycopg.Error):
                    await self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
        finally:
            await self.aclose()

    async def _open(self) -> KeptTx:
        if self._link is None or not self._link.is_alive():
            self._connection = connection = await self._db.dedicated_connection()
            try:
                if self._prepare is not None:
                    await self._prepare(Tx(connection))
                self._link = Link(connection, prepares=self._db.session.sends_startup)
            except BaseException:
                await connection.close()
                raise
        return KeptTx(self._link)


@functools.cache
def _number_parameters(statement: LiteralString) -> LiteralString:
    """Return the statement with `$1`, `$2` and so on in place of each `%s`, as libpq takes it."""
    first, *others = statement.split("%s")
    for number, part in enumerate(others, 1):
        first += f"${number}{part}"
    assert "%" not in first, "a parameter of another kind"
    return first
