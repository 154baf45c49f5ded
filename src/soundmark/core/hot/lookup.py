"""Look-ups of broadcasts in batches: what arrives together is one query, begun after the last of it arrived."""

import asyncio
import contextlib
from typing import Any, Final, NamedTuple, TypeAlias

import psycopg
import structlog
from prometheus_client import Histogram
from psycopg.rows import TupleRow

from soundmark.core.store.broadcasts import FIND_LIVE
from soundmark.kit.postgres import Database
from soundmark.kit.problems import DatabaseUnavailable

_BATCH_MAX: Final = 256
_WAITING_MAX: Final = 8192  # Memory is bounded before patience is: beyond this the database is not keeping up.
_QUERY_TIMEOUT_S: Final = 3.0
_log: Final = structlog.get_logger()
_batch_size: Final = Histogram(
    "soundmark_resolve_batch_size", "Tokens looked up by one query.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)


class Broadcast(NamedTuple):
    """A token that is not revoked, and what was signed for it."""

    token: str
    payload: bytes
    signature: bytes


Batch: TypeAlias = dict[str, list[asyncio.Future[Broadcast | None]]]
Query: TypeAlias = tuple[Batch, asyncio.Task[list[Any] | None]]


class BroadcastLookup:
    """Answers `find` for many callers with few queries, on one connection of its own.

    While one query is under way, questions gather; the next query begins when it ends. Every question is answered by a
    query that began after it was asked, so a revocation that was answered before is always seen.
    """

    def __init__(self, db: Database) -> None:
        self._db: Final = db
        self._connection: psycopg.AsyncConnection[TupleRow] | None = None
        self._waiting: Batch = {}
        self._waiting_count = 0
        self._asked = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to answer."""
        self._worker = asyncio.create_task(self._work(), name="broadcast-lookup")

    async def aclose(self) -> None:
        """Stop answering and let go of the connection."""
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker
        await self._drop_connection()

    def find(self, token: str) -> asyncio.Future[Broadcast | None]:
        """The broadcast of a token, None where there is none that is not revoked.

        Raises (from the future): DatabaseUnavailable.
        """
        future: asyncio.Future[Broadcast | None] = asyncio.get_running_loop().create_future()
        if self._waiting_count >= _WAITING_MAX:
            future.set_exception(DatabaseUnavailable())
            return future
        self._waiting.setdefault(token, []).append(future)
        self._waiting_count += 1
        self._asked.set()
        return future

    async def _work(self) -> None:
        while True:
            await self._asked.wait()
            # One turn of the loop, so that everything that arrived with the first question travels with it.
            await asyncio.sleep(0)
            query: Query | None = self._begin_query()
            while query is not None:
                batch, rows = query
                found = await rows
                # The next query is on its way before this one's answers are made: the database works while we sign.
                query = self._begin_query() if self._waiting else None
                if found is None:
                    _fail(batch)
                else:
                    _answer(batch, found)

    def _begin_query(self) -> Query:
        batch = self._take_batch()
        return batch, asyncio.create_task(self._query(list(batch)))

    def _take_batch(self) -> Batch:
        if len(self._waiting) <= _BATCH_MAX:
            batch, self._waiting = self._waiting, {}
            self._asked.clear()
        else:
            batch = {token: self._waiting.pop(token) for token in list(self._waiting)[:_BATCH_MAX]}
        self._waiting_count -= sum(map(len, batch.values()))
        _batch_size.observe(len(batch))
        return batch

    async def _query(self, tokens: list[str]) -> list[Any] | None:
        """The rows of the tokens; None when the database did not answer.

        A connection that turns out to be dead is replaced once: after a restart of the server it looks alive until it
        is used, and a read may be repeated.
        """
        for _ in range(2):
            try:
                async with asyncio.timeout(_QUERY_TIMEOUT_S):
                    if self._connection is None:
                        self._connection = await self._db.dedicated_connection()
                    cursor = await self._connection.execute(FIND_LIVE, (tokens,), prepare=True, binary=True)
                    return await cursor.fetchall()
            except (psycopg.OperationalError, psycopg.InterfaceError):
                await self._drop_connection()
            except Exception as error:  # noqa: BLE001 - whatever it was, the callers must not wait for ever
                _log.error("lookup_failed", error=type(error).__name__)
                await self._drop_connection()
                return None
        return None

    async def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                await connection.close()


def _answer(batch: Batch, rows: list[Any]) -> None:
    for row in rows:
        broadcast = Broadcast._make(row)
        for future in batch.pop(broadcast.token):
            if not future.done():
                future.set_result(broadcast)
    for futures in batch.values():
        for future in futures:
            if not future.done():
                future.set_result(None)


def _fail(batch: Batch) -> None:
    for futures in batch.values():
        for future in futures:
            if not future.done():
                future.set_exception(DatabaseUnavailable())
