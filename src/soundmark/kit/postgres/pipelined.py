"""Transactions of few round trips: prepared statements through libpq's pipeline, without the driver's cursors."""

import asyncio
import contextlib
import functools
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from soundmark.kit import open_transaction
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import ACQUIRE_TIMEOUT_S, ATTEMPTS, Database, find_timeout_s, remove_content
from soundmark.kit.postgres.link import STALE_ERRORS, Call, Link, Rows
from soundmark.kit.postgres.pipelined_tx import COMMIT, PipelinedTx
from soundmark.kit.postgres.sessions import CONNECT_TIMEOUT_S, STATEMENT_TIMEOUT_S
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, TIMEOUT_ERRORS, Send, describe_unavailable

_RESTING_MAX_S: Final = 60.0
# After the server's own limit for a statement, which leaves the connection sound.
_TRIP_TIMEOUT_S: Final = STATEMENT_TIMEOUT_S + CONNECT_TIMEOUT_S
_BEGIN: Final = Call("BEGIN ISOLATION LEVEL READ COMMITTED")
_BEGIN_READING: Final = Call("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
_ROLLBACK: Final = Call("ROLLBACK")


class PipelinedTransactions:
    """Connections outside the pool, `size` at most, each of which one transaction has for its time.

    The one that was used last is used next, so that few are open, and those have their plans; those that have rested
    for a minute are closed when another comes to rest. A new connection prepares what the others have prepared. All are
    closed with `db`. Readings use at most half of the connections, so that slow ones leave some. A connection that a
    reading opens prepares only what it reads: to prepare an INSERT would wait for a lock on its table.
    """

    def __init__(self, db: Database, *, size: int) -> None:
        self._db: Final = db
        self._free: Final = asyncio.Semaphore(size)
        self._free_for_reading: Final = asyncio.Semaphore(max(1, size // 2))
        self._resting: Final[deque[tuple[Link, float]]] = deque()
        self._links: Final[set[Link]] = set()
        self._statements: dict[LiteralString, None] = {}
        db.closing.append(self.aclose)

    @contextlib.asynccontextmanager
    async def transaction(self, *, tenant: str) -> AsyncIterator[PipelinedTx]:
        """Run a read-committed transaction: commit when the block ends, roll back when it raises.

        It begins with its first statements, in their round trip. Row-level security shows it the rows of `tenant`. A
        transaction inside another, or open across a call to another component, is an assertion failure.

        Raises: DatabaseUnavailable.
        """
        async with self._run((_BEGIN, _set("soundmark.tenant", tenant))) as tx:
            yield tx

    @contextlib.asynccontextmanager
    async def reading(self, *, tenant: str) -> AsyncIterator[tuple[PipelinedTx, Send]]:
        """Run a read-only transaction in one round trip, which is made at the end of the block.

        `send` is as in `PipelinedTx.pipeline`, and `tenant` as in `transaction`. Each statement may take 30 s, or what
        is left of the request's deadline. If the connection is lost, they are sent again on another.

        Raises: DatabaseUnavailable.
        """
        begin = [_BEGIN_READING, _set("soundmark.tenant", tenant)]
        timeout_s = find_timeout_s()
        if timeout_s is not None:
            begin.append(_set("statement_timeout", f"{timeout_s}s"))
        await _take_place(self._free_for_reading)
        try:
            async with self._run(begin, only_reads=True) as tx, tx.pipeline(commits=True) as send:
                yield tx, send
        finally:
            self._free_for_reading.release()

    @contextlib.asynccontextmanager
    async def _run(self, begin: Sequence[Call], *, only_reads: bool = False) -> AsyncIterator[PipelinedTx]:
        open_transaction.assert_no_transaction("a transaction")
        await _take_place(self._free)
        try:
            opened = await self.open_link(only_reads=only_reads)
            link = _BeginningLink(self, opened, begin, only_reads=only_reads)
            tx = PipelinedTx(link)
            token = open_transaction.is_open.set(True)
            try:
                yield tx
                if not tx.is_over:
                    await link.commit()
            except (*CONNECTION_ERRORS, *STALE_ERRORS) as error:
                if only_reads and isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                    raise  # Our own mistake, whatever the server is.
                raise describe_unavailable(error) from error
            except psycopg.DatabaseError as error:
                remove_content(error)
                raise
            finally:
                open_transaction.is_open.reset(token)
                self._db.note_announced(tx.announced)
                await link.end()
                self.rest(link.link)
        finally:
            self._free.release()

    async def open_link(self, *, only_reads: bool = False) -> Link:
        """Return the connection that was used last and is alive, or a new one, which `only_reads` for now."""
        while self._resting:
            link, _ = self._resting.pop()
            if link.is_alive():
                return link
            self._links.discard(link)
        connection = await self._db.dedicated_connection()
        statements = () if only_reads else self._statements
        link = Link(connection, statements, prepares=self._db.session.sends_startup)
        self._links.add(link)
        return link

    def rest(self, link: Link) -> None:
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

    def lose(self, link: Link, error: Exception) -> None:
        """Close a connection, whose transaction the server then rolls back."""
        self._links.discard(link)
        link.lose(error)

    async def aclose(self) -> None:
        """Close every connection; transactions that are open fail, and the next one opens another."""
        for link in list(self._links):
            self.lose(link, psycopg.OperationalError("closed"))
        self._resting.clear()


class _BeginningLink:
    """A connection on which the first round trip begins a transaction, wherever that succeeds."""

    def __init__(
        self, connections: PipelinedTransactions, link: Link, begin: Sequence[Call], *, only_reads: bool
    ) -> None:
        self._connections: Final = connections
        self._begin: Final = begin
        self._only_reads: Final = only_reads
        self.link = link
        self._has_begun = False

    def columns_of(self, statement: LiteralString) -> tuple[str, ...]:
        """Return the names of the columns that `statement`, which was answered before, returns."""
        return self.link.columns_of(statement)

    async def send(self, calls: Sequence[Call]) -> list[Rows]:
        """Return the rows of the calls, of which the first ones begin the transaction.

        If the connection turns out to be lost or stale then, nothing has been changed, and it is replaced.
        """
        if self._has_begun:
            return await self._send(calls)
        for _ in range(ATTEMPTS):
            try:
                answers = await self._send((*self._begin, *calls))
            except TIMEOUT_ERRORS:
                raise
            except (*CONNECTION_ERRORS, *STALE_ERRORS) as error:
                self._connections.lose(self.link, error)
                if self._only_reads:
                    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                        raise
                elif COMMIT in calls and not isinstance(error, STALE_ERRORS):
                    raise
                self.link = await self._connections.open_link(only_reads=self._only_reads)
            else:
                self._has_begun = True
                return answers[len(self._begin) :]
        raise DatabaseUnavailable

    async def commit(self) -> None:
        """Commit, if anything was begun."""
        if self._has_begun:
            await self._send([COMMIT])

    async def end(self) -> None:
        """Roll back what was not committed; the connection is closed if that fails."""
        if self.link.is_in_transaction():
            with contextlib.suppress(psycopg.Error):
                await self.link.send([_ROLLBACK])

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


async def _take_place(places: asyncio.Semaphore) -> None:
    """Wait for one of the places.

    Raises: DatabaseUnavailable if that takes too long.
    """
    if not places.locked():
        await places.acquire()
        return
    try:
        async with asyncio.timeout(ACQUIRE_TIMEOUT_S):
            await places.acquire()
    except TimeoutError as error:
        raise DatabaseUnavailable from error


@functools.lru_cache(maxsize=1024)
def _set(name: LiteralString, value: str) -> Call:
    """Return the setting that ends with the transaction, as text: `Database` says why it is not `set_config`."""
    statement = sql.SQL("SET LOCAL {} TO {}").format(sql.SQL(name), value).as_string(None)
    return Call(statement, is_kept=False)
