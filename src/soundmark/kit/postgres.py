"""PostgreSQL: one visible transaction for a command, and guards against the ways that goes wrong."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, LiteralString, Protocol, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from soundmark.kit import postgres_releases
from soundmark.kit.problems import DatabaseUnavailable
from soundmark.kit.secret import Secret

EVERY_TENANT: Final = "*"  # For an operator's question that is about all of them; few tables answer it.

Params = Mapping[str, Any]
R = TypeVar("R")
T = TypeVar("T")

CONNECT_TIMEOUT_S: Final = 3
STATEMENT_TIMEOUT_S: Final = 30
_ACQUIRE_TIMEOUT_S: Final = 3.0
# The pool doubles its pause after every attempt that failed; given up early, the next question asks anew, and the
# database is found again seconds after it is back and not as much later as it was gone.
_RECONNECT_TIMEOUT_S: Final = 2.0
_ATTEMPTS: Final = 3
_IN_TRANSACTION: Final = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_OPTIONS: Final = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
        "idle_in_transaction_session_timeout": "30s",
        "timezone": "UTC",
        "synchronous_commit": "on",
    }.items()
)

_open_transaction: Final[ContextVar[bool]] = ContextVar("open_transaction", default=False)


def assert_no_transaction(what: str) -> None:
    """Fail loudly where `what` would hold a transaction's locks open for longer than we control."""
    assert not _open_transaction.get(), f"{what} inside a transaction"


def connect_options(application_name: str) -> dict[str, Any]:
    """Keyword arguments of every connection that we open."""
    return {"options": _OPTIONS, "connect_timeout": CONNECT_TIMEOUT_S, "application_name": application_name}


class Tx:
    """An open transaction. Steps and store functions take one; only a command opens one."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection: Final = connection
        self._round: _Round | None = None
        self.is_over = False
        self.announced: Final[set[str]] = set()

    @property
    def connection(self) -> psycopg.AsyncConnection[Any]:
        """The connection itself, for a library that takes part in the transaction; nobody commits on it."""
        return self._connection

    def announce(self, name: str) -> None:
        """Have `Database.take_announced` return `name` once the transaction is over."""
        self.announced.add(name)

    async def all(self, record: type[R], statement: LiteralString, params: Params | None = None) -> list[R]:
        """Every row as a `record`, whose fields are named like the columns."""
        async with self._connection.cursor(row_factory=class_row(record)) as cursor:
            await cursor.execute(statement, params)
            await self._answered()
            return await cursor.fetchall()

    async def one_or_none(self, record: type[R], statement: LiteralString, params: Params | None = None) -> R | None:
        """The one row, or None. More than one is a mistake of ours."""
        rows = await self.all(record, statement, params)
        assert len(rows) <= 1, "a statement for one row found several"
        return rows[0] if rows else None

    async def value(self, statement: LiteralString, params: Params | None = None) -> Any:
        """The first column of the one row; None without a row."""
        cursor = await self._connection.execute(statement, params)
        await self._answered()
        row = await cursor.fetchone()
        return None if row is None else row[0]

    async def run(self, statement: LiteralString, params: Params | None = None) -> int:
        """Carry out a statement that answers no rows; the number of rows it touched."""
        cursor = await self._connection.execute(statement, params)
        await self._answered()
        return cursor.rowcount

    async def run_many(self, statement: LiteralString, rows: Sequence[Params]) -> None:
        """Carry out one statement for each of `rows`, in one round trip."""
        async with self._connection.cursor() as cursor:
            await cursor.executemany(statement, rows)

    @contextlib.asynccontextmanager
    async def together(self) -> AsyncIterator["Ask"]:
        """What is asked in the block goes out in one go, and all answers are there when it ends.

        `ask` takes functions that carry out one statement each, which the server does one after the other in this
        order, and gives tasks: their `result()` is there after the block, which raises what the first of them raises
        that fails. Each statement sees what was committed before it began, as if it had been sent alone.
        """
        asked: list[asyncio.Task[Any]] = []
        self._round = this = _Round()

        def ask(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
            task = asyncio.create_task(work)
            task.add_done_callback(this.note_sent)  # What fails before it sends is not waited for.
            asked.append(task)
            return task

        raised: BaseException | None = None
        try:
            async with self._connection.pipeline() as pipeline:
                yield ask
                await this.until_sent(len(asked))
                await pipeline.sync()
        except BaseException as error:  # noqa: BLE001 - raised below
            raised = error
            for task in asked:
                task.cancel()
        self._round = None
        this.answered.set()
        await asyncio.gather(*asked, return_exceptions=True)
        if raised is None:
            for task in asked:
                task.result()
        elif isinstance(raised, psycopg.Error):
            # What fails is told to whoever of them listens just then; the others are told that something failed.
            told = [task.exception() for task in asked if not task.cancelled()]
            raise _first_failure([*told, raised])
        else:
            raise raised

    @contextlib.asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """What is carried out in the block goes out in one go, with the commit behind it, and answers nothing.

        The last thing in a transaction: one round trip instead of one for each statement.
        """
        async with self._connection.pipeline() as pipeline:
            yield
            await self._connection.execute("COMMIT")
            await pipeline.sync()
        self.is_over = True

    async def _answered(self) -> None:
        """Wait for the answer of a statement that was sent `together` with others."""
        if self._round is not None:
            await self._round.until_answered()


class Ask(Protocol):
    """What `Tx.together` gives."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> asyncio.Task[T]:
        """The task of `work`."""
        ...


class _Round:
    """Statements that go out together: each is sent and waits until all are answered."""

    def __init__(self) -> None:
        self.answered: Final = asyncio.Event()
        self._sent: Final = asyncio.Event()
        self._sent_count = 0

    async def until_answered(self) -> None:
        """Say that a statement is sent, and wait."""
        self.note_sent()
        await self.answered.wait()

    async def until_sent(self, count: int) -> None:
        """Return once `count` of them are on their way, or have failed before they could be."""
        while self._sent_count < count:
            self._sent.clear()
            await self._sent.wait()

    def note_sent(self, _: object = None) -> None:
        """One more is on its way."""
        self._sent_count += 1
        self._sent.set()


class Database:
    """A pool of connections to one database, with our rules about transactions."""

    def __init__(self, url: Secret, *, pool_size: int, application_name: str) -> None:
        self.url: Final = url
        self._application_name: Final = application_name
        self._server_version: int | None = None
        self._announced: set[str] = set()
        self._pool: Final = AsyncConnectionPool(
            url.reveal(),
            min_size=1,
            max_size=pool_size,
            timeout=_ACQUIRE_TIMEOUT_S,
            reconnect_timeout=_RECONNECT_TIMEOUT_S,
            kwargs={**connect_options(application_name), "autocommit": True},
            open=False,
            name=application_name,
            configure=self._note_version,
        )

    async def open(self) -> None:
        """Connect.

        Raises: DatabaseUnavailable.
        """
        await self._pool.open()
        try:
            await self._pool.wait(timeout=CONNECT_TIMEOUT_S * 2)
        except (PoolTimeout, psycopg.OperationalError):
            await self._pool.close()
            raise DatabaseUnavailable from None

    async def close(self) -> None:
        """Let go of every connection."""
        await self._pool.close()

    @contextlib.asynccontextmanager
    async def transaction(
        self, *, tenant: str | None = None, subject: str | None = None, statement_timeout_s: int | None = None
    ) -> AsyncIterator[Tx]:
        """Run a read-committed transaction: commit when the block ends, roll back when it raises.

        Row-level security shows it the rows of `tenant` and the memberships of the person `subject`; without them, no
        row of any tenant. Each statement may take 30 s, or `statement_timeout_s`. A transaction inside another, or open
        across a call to another component, is an assertion failure.

        Raises: DatabaseUnavailable.
        """
        async with self._begun(_begin("READ COMMITTED", tenant, subject, statement_timeout_s)) as tx:
            yield tx

    @contextlib.asynccontextmanager
    async def snapshot(self, *, tenant: str | None = None, subject: str | None = None) -> AsyncIterator[Tx]:
        """Run a repeatable-read, read-only transaction, which reads everything as of one moment.

        `tenant` and `subject` are as in `transaction`.

        Raises: DatabaseUnavailable.
        """
        async with self._begun(_begin("REPEATABLE READ READ ONLY", tenant, subject)) as tx:
            yield tx

    @contextlib.asynccontextmanager
    async def beside(self, tx: Tx) -> AsyncIterator[Tx]:
        """A second snapshot, on a connection of its own, that sees exactly what the snapshot `tx` sees.

        For reading in two halves what is too much for one of the server's processes. Of a snapshot without a tenant.

        Raises: DatabaseUnavailable, also where no second connection is free.
        """
        exported: str = await tx.value("SELECT pg_export_snapshot()")
        begin = _begin("REPEATABLE READ READ ONLY", None, None)
        begin += sql.SQL("; SET TRANSACTION SNAPSHOT {}").format(exported).as_bytes(None)
        async with self._begun(begin, is_beside=True) as second:
            yield second

    async def one_or_none(self, record: type[R], statement: LiteralString, params: Params | None = None) -> R | None:
        """The one row that `all` finds, or None."""
        rows = await self.all(record, statement, params)
        assert len(rows) <= 1, "a statement for one row found several"
        return rows[0] if rows else None

    async def all(self, record: type[R], statement: LiteralString, params: Params | None = None) -> list[R]:
        """The rows of a statement that only reads, in a transaction of its own: a third of the round trips.

        No tenant's row is there. For what each request asks before anything is known of it.

        Raises: DatabaseUnavailable.
        """
        assert_no_transaction("a statement of its own")
        for _ in range(_ATTEMPTS):
            try:
                connection = await self._pool.getconn()
            except (PoolTimeout, psycopg.OperationalError):
                raise DatabaseUnavailable from None
            try:
                return await Tx(connection).all(record, statement, params)
            except psycopg.errors.QueryCanceled as error:
                raise DatabaseUnavailable("The database did not answer in time.") from error
            except (psycopg.OperationalError, psycopg.InterfaceError):
                pass  # Dead, and did not know it, as in `_acquire`. What only reads may be asked again.
            finally:
                await self._pool.putconn(connection)
            await self._pool.check()
        raise DatabaseUnavailable

    def take_announced(self) -> set[str]:
        """Return what transactions of this process announced since the last call, whether they committed or not."""
        announced, self._announced = self._announced, set()
        return announced

    async def is_ready(self) -> bool:
        """Whether the database answers."""
        try:
            async with self.snapshot() as tx:
                return bool(await tx.value("SELECT 1") == 1)
        except DatabaseUnavailable:
            return False

    def find_warning(self) -> str | None:
        """Return what to say against the release of the server, in one sentence; None when nothing is."""
        return None if self._server_version is None else postgres_releases.find_warning(self._server_version)

    async def _note_version(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Note what each new connection is told: a server may be upgraded while we run."""
        self._server_version = connection.info.server_version

    async def dedicated_connection(self) -> psycopg.AsyncConnection[Any]:
        """A connection outside the pool, in autocommit mode, for one owner that keeps it.

        Raises: DatabaseUnavailable.
        """
        try:
            return await psycopg.AsyncConnection.connect(
                self.url.reveal(), autocommit=True, **connect_options(f"{self._application_name}-hot")
            )
        except psycopg.OperationalError:
            raise DatabaseUnavailable from None

    @contextlib.asynccontextmanager
    async def _begun(self, begin: bytes, *, is_beside: bool = False) -> AsyncIterator[Tx]:
        if not is_beside:
            assert_no_transaction("a transaction")
        connection = await self._acquire(begin)
        token = _open_transaction.set(True)
        tx = Tx(connection)
        try:
            try:
                yield tx
            except BaseException as error:
                with contextlib.suppress(psycopg.Error):
                    await connection.rollback()
                if isinstance(error, psycopg.DatabaseError):
                    _without_content(error)
                raise
            if not tx.is_over:
                await connection.execute("COMMIT")
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if isinstance(error, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable):
                raise DatabaseUnavailable("The database did not answer in time.") from error
            raise DatabaseUnavailable from error
        finally:
            self._announced |= tx.announced
            _open_transaction.reset(token)
            await self._give_back(connection)

    async def _acquire(self, begin: bytes) -> psycopg.AsyncConnection[Any]:
        """A connection whose transaction has begun.

        After a restart of the server the pool holds connections that are dead and do not know it. BEGIN finds out
        before anything was done, so trying another one is safe.
        """
        for _ in range(_ATTEMPTS):
            try:
                connection = await self._pool.getconn()
            except (PoolTimeout, psycopg.OperationalError):
                raise DatabaseUnavailable from None
            try:
                await connection.execute(begin)
            except (psycopg.OperationalError, psycopg.InterfaceError):
                await self._pool.putconn(connection)
                await self._pool.check()
            except BaseException:
                # Cancelled. What the pool does not get back it never replaces.
                await self._give_back(connection)
                raise
            else:
                return connection
        raise DatabaseUnavailable

    async def _give_back(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Return `connection` to the pool without a transaction.

        Whoever is cancelled while BEGIN or COMMIT is under way leaves one open: psycopg waits for the server's answer
        before it lets the cancellation through. The pool would end it too, and warn of it.
        """
        if connection.info.transaction_status in _IN_TRANSACTION:
            with contextlib.suppress(psycopg.Error):
                await connection.rollback()
        await self._pool.putconn(connection)


def _first_failure(told: Sequence[BaseException | None]) -> BaseException:
    """What went wrong, among those who were told it, or only that something did."""
    failures = [error for error in told if isinstance(error, psycopg.Error)]
    return next((error for error in failures if not isinstance(error, psycopg.errors.PipelineAborted)), failures[0])


def _without_content(error: psycopg.DatabaseError) -> None:
    """The error says what sort it is, and no longer what the row held: its text ends up in a log."""
    place = error.diag.constraint_name or error.diag.column_name or error.diag.table_name
    error.args = (f"SQLSTATE {error.sqlstate}" + (f" at {place}" if place else ""),)


@functools.lru_cache(maxsize=1024)
def _begin(
    isolation: LiteralString, tenant: str | None, subject: str | None, statement_timeout_s: int | None = None
) -> bytes:
    """Return the statements that begin a transaction and name its tenant, for one round trip.

    The settings end with the transaction. They are `SET LOCAL`, not `set_config`, so that whatever may stand between
    this process and the tables can tell that they are settings, and hand them on.
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
