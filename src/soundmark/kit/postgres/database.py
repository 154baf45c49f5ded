"""A pool of connections to PostgreSQL, and one visible transaction for each command."""

import asyncio
import contextlib
import functools
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, LiteralString, TypeVar

import psycopg
import structlog
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from soundmark.kit import deadline, open_transaction
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres import releases as postgres_releases
from soundmark.kit.postgres.sessions import (
    CONNECT_TIMEOUT_S,
    DIRECT,
    READ_ONLY,
    STATEMENT_TIMEOUT_S,
    CannotConnect,
    HostsConnection,
    ListeningConnection,
    SessionOptions,
    connect_options,
    describe_refusal,
)
from soundmark.kit.postgres.transaction import (
    CONNECTION_ERRORS,
    TIMEOUT_ERRORS,
    Params,
    Tx,
    describe_unavailable,
    is_lost,
)

R = TypeVar("R")

EVERY_TENANT: Final = "*"  # For operators' commands on all tenants; few tables show their rows to it.

ACQUIRE_TIMEOUT_S: Final = 3.0
# The pool doubles its pause after every failed attempt. It gives up early, and the next request starts over, so that
# the database is found within seconds of its return, however long the outage was.
_RECONNECT_TIMEOUT_S: Final = 2.0
_JUDGE_TIMEOUT_S: Final = 1.7  # Twice this is less than a check of readiness may take.
ATTEMPTS: Final = 3
_log: Final = structlog.get_logger()
_IN_TRANSACTION: Final = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Database:
    """A pool of connections to one database, with our rules for transactions."""

    def __init__(self, url: Secret, *, pool_size: int, application_name: str, session: SessionOptions = DIRECT) -> None:
        self.url: Final = url
        self.session: Final = session
        self._application_name: Final = application_name
        self._versions_seen: Final[set[int]] = set()
        self._announced: set[str] = set()
        self.closing: Final[list[Callable[[], Awaitable[None]]]] = []
        self.has_announced: Final = asyncio.Event()
        self._pool: Final = AsyncConnectionPool(
            url.reveal(),
            min_size=1,
            max_size=pool_size,
            timeout=ACQUIRE_TIMEOUT_S,
            reconnect_timeout=_RECONNECT_TIMEOUT_S,
            connection_class=HostsConnection,
            kwargs={**connect_options(url, application_name, session), "autocommit": True},
            open=False,
            name=application_name,
            configure=self._judge_version,
        )

    async def open(self) -> None:
        """Open the pool.

        Raises: CannotConnect.
        """
        await self._pool.open()
        try:
            await self._pool.wait(timeout=CONNECT_TIMEOUT_S * 2)
        except (PoolTimeout, psycopg.OperationalError):
            await self._pool.close()
            raise CannotConnect(await self._find_refusal() or "does not answer") from None

    async def close(self) -> None:
        """Close every connection of the pool, and the others whose owners said so."""
        for close in self.closing:
            await close()
        await self._pool.close()

    @contextlib.asynccontextmanager
    async def transaction(
        self, *, tenant: str | None = None, subject: str | None = None, statement_timeout_s: int | None = None
    ) -> AsyncIterator[Tx]:
        """Run a read-committed transaction: commit when the block ends, roll back when it raises.

        Row-level security shows it the rows of `tenant` and the memberships of the person `subject`; without them, no
        row of any tenant. Each statement may take `statement_timeout_s`, by default 30 s or what is left of the
        request's deadline. A transaction inside another, or open across a call to another component, is an assertion
        failure.

        Raises: DatabaseUnavailable.
        """
        timeout_s = statement_timeout_s or find_timeout_s()
        async with self._run_begun(_begin("READ COMMITTED", tenant, subject, timeout_s)) as tx:
            yield tx

    @contextlib.asynccontextmanager
    async def snapshot(self, *, tenant: str | None = None) -> AsyncIterator[Tx]:
        """Run a repeatable-read, read-only transaction, which reads everything as of one moment.

        `tenant` and the time that a statement may take are as in `transaction`.

        Raises: DatabaseUnavailable.
        """
        begin = _begin("REPEATABLE READ READ ONLY", tenant, None, find_timeout_s())
        async with self._run_begun(begin, only_reads=True) as tx:
            yield tx

    @contextlib.asynccontextmanager
    async def beside(self, tx: Tx) -> AsyncIterator[Tx]:
        """Begin a second snapshot, on a connection of its own, that sees exactly what the snapshot `tx` sees.

        So two of the server's processes can share the work of reading. `tx` has no tenant.

        Raises: DatabaseUnavailable, also if no second connection is free.
        """
        exported: str = await tx.value("SELECT pg_export_snapshot()")
        begin = _begin("REPEATABLE READ READ ONLY", None, None)
        begin += sql.SQL("; SET TRANSACTION SNAPSHOT {}").format(exported).as_bytes(None)
        timeout_s = find_timeout_s()
        if timeout_s is not None:
            # After the snapshot, which must come before any query.
            begin += sql.SQL("; SET LOCAL statement_timeout = {}").format(f"{timeout_s}s").as_bytes(None)
        async with self._run_begun(begin, only_reads=True, is_beside=True) as second:
            yield second

    async def one_or_none(self, record: type[R], statement: LiteralString, params: Params | None = None) -> R | None:
        """Return the one row that `all` finds, or None."""
        rows = await self.all(record, statement, params)
        assert len(rows) <= 1, "a statement for one row found several"
        return rows[0] if rows else None

    async def all(self, record: type[R], statement: LiteralString, params: Params | None = None) -> list[R]:
        """Return the rows of one reading statement, sent without BEGIN and COMMIT: a third of the round trips.

        It sees no tenant's rows. Requests read with it before their tenant is known.

        Raises: DatabaseUnavailable.
        """
        open_transaction.assert_no_transaction("a statement of its own")
        for _ in range(ATTEMPTS):
            try:
                connection = await self._pool.getconn()
            except (PoolTimeout, psycopg.OperationalError):
                raise DatabaseUnavailable from None
            try:
                return await Tx(connection).all(record, statement, params)
            except TIMEOUT_ERRORS as error:
                raise describe_unavailable(error) from error
            except CONNECTION_ERRORS:
                await connection.close()  # It had died unnoticed, as in `_acquire`. Reads may be repeated.
            finally:
                await self._pool.putconn(connection)
            await self._pool.check()
        raise DatabaseUnavailable

    def note_announced(self, names: set[str]) -> None:
        """Note what a transaction has announced, which has ended or is about to."""
        if names:
            self._announced |= names
            self.has_announced.set()

    def take_announced(self) -> set[str]:
        """Return what transactions of this process announced since the last call, whether they committed or not.

        `has_announced` is set while there is any.
        """
        announced, self._announced = self._announced, set()
        self.has_announced.clear()
        return announced

    async def is_ready(self) -> bool:
        """Return whether the database answers."""
        try:
            async with self.snapshot() as tx:
                return bool(await tx.value("SELECT 1") == 1)
        except DatabaseUnavailable:
            return False

    async def is_writable(self) -> bool:
        """Return False if every server that answers accepts no writes, as a standby does."""
        is_read_only = False
        try:
            async with asyncio.timeout(_JUDGE_TIMEOUT_S), self.snapshot() as tx:
                is_read_only = await tx.value(
                    "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean"
                )
        except (DatabaseUnavailable, TimeoutError):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_JUDGE_TIMEOUT_S):
                    is_read_only = await self._find_refusal() == READ_ONLY
        return not is_read_only

    async def _find_refusal(self) -> str | None:
        """Return why a new connection is not opened, in the words of `CannotConnect`; None if it is."""
        try:
            connection = await self._connect(self._application_name)
        except psycopg.OperationalError as error:
            return describe_refusal(error)
        await connection.close()
        return None

    async def _judge_version(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Log each release that serves us and lacks fixes, once; the server may change while we run.

        `up`, at a terminal, says it itself, and does not show this level.
        """
        version = connection.info.server_version
        if version not in self._versions_seen:
            self._versions_seen.add(version)
            warning = postgres_releases.find_warning(version)
            if warning is not None:
                _log.info("postgres_outdated", detail=warning)

    async def dedicated_connection(self) -> HostsConnection:
        """Open a connection outside the pool, in autocommit mode, for one owner that keeps it.

        Raises: DatabaseUnavailable.
        """
        try:
            return await self._connect(f"{self._application_name}-hot")
        except psycopg.OperationalError:
            raise DatabaseUnavailable from None

    async def _connect(self, application_name: str) -> HostsConnection:
        options = connect_options(self.url, application_name, self.session)
        return await ListeningConnection.connect(self.url.reveal(), autocommit=True, **options)

    @contextlib.asynccontextmanager
    async def _run_begun(self, begin: bytes, *, only_reads: bool = False, is_beside: bool = False) -> AsyncIterator[Tx]:
        if not is_beside:
            open_transaction.assert_no_transaction("a transaction")
        connection = await self._acquire(begin)
        token = open_transaction.is_open.set(True)
        tx = Tx(connection)
        try:
            try:
                yield tx
            except BaseException as error:
                if is_lost(error):
                    await connection.close()
                with contextlib.suppress(psycopg.Error):
                    await connection.rollback()
                if isinstance(error, psycopg.DatabaseError):
                    remove_content(error)
                raise
            if not tx.is_over:
                await connection.execute("COMMIT")
                connection.standbys.require()
        except CONNECTION_ERRORS as error:
            if only_reads and isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                raise  # Our own mistake, whatever the server is.
            if is_lost(error):
                await connection.close()
            raise describe_unavailable(error) from error
        finally:
            self.note_announced(tx.announced)
            open_transaction.is_open.reset(token)
            await self._give_back(connection)

    async def _acquire(self, begin: bytes) -> HostsConnection:
        """Return a connection on which a transaction has begun.

        After a restart of the server the pool holds connections that have died unnoticed. BEGIN finds them before
        anything is done, so it is safe to try another.
        """
        for _ in range(ATTEMPTS):
            try:
                connection = await self._pool.getconn()
            except (PoolTimeout, psycopg.OperationalError):
                raise DatabaseUnavailable from None
            try:
                await connection.execute(begin)
            except CONNECTION_ERRORS:
                await connection.close()
                await self._pool.putconn(connection)
                await self._pool.check()
            except BaseException:
                # Cancelled. The pool never replaces a connection that is not returned to it.
                await self._give_back(connection)
                raise
            else:
                return connection
        raise DatabaseUnavailable

    async def _give_back(self, connection: HostsConnection) -> None:
        """Return `connection` to the pool without a transaction.

        A task that is cancelled during BEGIN or COMMIT leaves one open: psycopg waits for the server's answer before it
        passes the cancellation on. The pool would end the transaction too, but log a warning.
        """
        if connection.info.transaction_status in _IN_TRANSACTION:
            with contextlib.suppress(psycopg.Error):
                await connection.rollback()
        await self._pool.putconn(connection)


def remove_content(error: psycopg.DatabaseError) -> None:
    """Remove the content of rows from the error, whose text ends up in a log."""
    place = error.diag.constraint_name or error.diag.column_name or error.diag.table_name
    error.args = (f"SQLSTATE {error.sqlstate}" + (f" at {place}" if place else ""),)


def find_timeout_s() -> int | None:
    """Return how long a statement may take for a request with a deadline; None where the connection's limit is less.

    At the deadline the request is cancelled, and its query with it. This timeout is enforced by the server, so that no
    query runs on for a process that died or hangs.
    """
    remaining_s = deadline.find_remaining_s()
    if remaining_s is None or remaining_s >= STATEMENT_TIMEOUT_S:
        return None
    return math.floor(remaining_s) + 1


@functools.lru_cache(maxsize=1024)
def _begin(
    isolation: LiteralString, tenant: str | None, subject: str | None, statement_timeout_s: int | None = None
) -> bytes:
    """Return the statements that begin a transaction and name its tenant, for one round trip.

    The settings end with the transaction. They are `SET LOCAL`, not `set_config`, so that a proxy in front of the
    database can recognise them as settings and pass them on.
    """
    statements: list[sql.Composable] = [sql.SQL("BEGIN ISOLATION LEVEL ") + sql.SQL(isolation)]
    settings = {
        "soundmark.tenant": tenant,
        "soundmark.subject": subject,
        "statement_timeout": None if statement_timeout_s is None else f"{statement_timeout_s}s",
    }
    for name, value in settings.items():
        if value is not None:
            statements.append(sql.SQL("SET LOCAL {} TO {}").format(sql.Identifier(*name.split(".")), value))
    return sql.SQL("; ").join(statements).as_bytes(None)
