"""Connections to PostgreSQL that tests borrow: opening one takes longer than most of what a test does with it."""

import contextlib
import select
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from soundmark.kit.crypto.secret import Secret

C = TypeVar("C", psycopg.Connection[Any], psycopg.AsyncConnection[Any])

# A statement over all tables, small as they are, would be planned for several processes, which it costs more to start
# than to do without.
_ALONE: Final = "-c max_parallel_workers_per_gather=0"
_IDLE: Final[dict[str, list[psycopg.Connection[Any]]]] = {}
_IDLE_ASYNC: Final[dict[str, list[psycopg.AsyncConnection[Any]]]] = {}


@contextlib.contextmanager
def borrow(url: Secret) -> Iterator[psycopg.Connection[Any]]:
    """Lend a connection in autocommit mode. The block leaves no setting and no transaction behind, or fails.

    After a failure the connection is closed.
    """
    idle = _IDLE.setdefault(url.reveal(), [])
    connection = _take(idle)
    if connection is None:
        connection = psycopg.connect(url.reveal(), autocommit=True, prepare_threshold=None, options=_ALONE)
    try:
        yield connection
        _require_idle(connection)
    except BaseException:
        connection.close()
        raise
    idle.append(connection)


@contextlib.asynccontextmanager
async def borrow_async(url: Secret) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Lend a connection as `borrow` does."""
    idle = _IDLE_ASYNC.setdefault(url.reveal(), [])
    connection = _take(idle)
    if connection is None:
        # A prepared statement would rest on the tables as they were, which tests change.
        connection = await psycopg.AsyncConnection.connect(
            url.reveal(), autocommit=True, prepare_threshold=None, options=_ALONE
        )
    try:
        yield connection
        _require_idle(connection)
    except BaseException:
        await connection.close()
        raise
    idle.append(connection)


def close_connections() -> None:
    """Close every connection that nobody borrows."""
    for shelf in (_IDLE, _IDLE_ASYNC):
        for idle in shelf.values():
            for connection in idle:
                connection.pgconn.finish()
        shelf.clear()


def _require_idle(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """The next borrower would work inside the transaction that this one left open."""
    status = connection.info.transaction_status
    assert status == TransactionStatus.IDLE, f"the connection comes back in {status.name}"


def _take(idle: list[C]) -> C | None:
    while idle:
        connection = idle.pop()
        # A server speaks first only to say farewell.
        if not connection.closed and not select.select([connection.fileno()], [], [], 0)[0]:
            return connection
        connection.pgconn.finish()
    return None
