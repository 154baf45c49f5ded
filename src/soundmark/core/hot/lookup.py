"""Questions in batches: what arrives together is one query, begun after the last of it arrived, and one signature."""

import asyncio
import contextlib
import itertools
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import psycopg
import structlog
from prometheus_client import Histogram
from psycopg.rows import TupleRow

from soundmark.core.hot.answers import Answers, Broadcast, Outcome, Outcomes, Question
from soundmark.core.store.broadcasts import FIND_LIVE
from soundmark.kit.postgres import Database
from soundmark.kit.problems import DatabaseUnavailable, InternalError
from soundmark.kit.tasks import ended

_BATCH_MAX: Final = 256
_WAITING_MAX: Final = 8192  # Memory is bounded before patience is: beyond this the database is not keeping up.
_QUERY_TIMEOUT_S: Final = 3.0
_log: Final = structlog.get_logger()
_batch_size: Final = Histogram(
    "soundmark_resolve_batch_size", "Questions answered by one query.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)


Batch: TypeAlias = dict[Question, list[asyncio.Future[Outcome]]]
Query: TypeAlias = tuple[Batch, asyncio.Task[list[Any] | None]]


class BroadcastLookup:
    """Answers `ask` for many callers with few queries, on one connection of its own.

    While one query is under way, questions gather; the next query begins when it ends. Every question is answered by a
    query that began after it was asked, so a revocation that was answered before is always seen. Whoever asks the same
    as somebody else in one batch gets the same bytes, unless the Code is measured. All answers are made before
    the first is handed out: between two of them, a caller's socket would wake somebody up for each (bench/RESULTS.md).
    """

    def __init__(self, db: Database, answers: Answers) -> None:
        self._db: Final = db
        self._answers: Final = answers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: psycopg.AsyncConnection[TupleRow] | None = None
        self._waiting: Batch = {}
        self._waiting_count = 0
        self._asked = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._under_way: Query | None = None

    def start(self) -> None:
        """Begin to answer."""
        self._loop = asyncio.get_running_loop()
        self._worker = asyncio.create_task(self._work(), name="broadcast-lookup")

    async def aclose(self) -> None:
        """Stop answering and let go of the connection."""
        if self._worker is not None:
            await ended(self._worker)
        if self._under_way is not None:
            await ended(self._under_way[1])
        await self._drop_connection()

    def ask(self, question: Question) -> asyncio.Future[Outcome]:
        """What is answered to `question`; `DatabaseUnavailable` as an outcome, where the database does not answer."""
        assert self._loop is not None, "asked before the start"
        future: asyncio.Future[Outcome] = self._loop.create_future()
        if self._waiting_count >= _WAITING_MAX:
            future.set_result(DatabaseUnavailable())
            return future
        self._waiting.setdefault(question, []).append(future)
        self._waiting_count += 1
        self._asked.set()
        return future

    async def _work(self) -> None:
        while True:
            await self._asked.wait()
            # One turn of the loop, so that everything that arrived with the first question travels with it.
            await asyncio.sleep(0)
            self._under_way = self._begin_query()
            while self._under_way is not None:
                batch, rows = self._under_way
                found = await rows
                # The next query is on its way before this one's answers are made: the database works while we sign.
                self._under_way = self._begin_query() if self._waiting else None
                _settle(batch, await self._outcomes(batch, found))

    def _begin_query(self) -> Query:
        batch = self._take_batch()
        # A token has no character that an array literal would have to quote.
        tokens = "{" + ",".join({question.token for question in batch}) + "}"
        return batch, asyncio.create_task(self._query(tokens), name="broadcast-query")

    def _take_batch(self) -> Batch:
        if len(self._waiting) <= _BATCH_MAX:
            batch, self._waiting = self._waiting, {}
            self._asked.clear()
        else:
            batch = {question: self._waiting.pop(question) for question in list(self._waiting)[:_BATCH_MAX]}
        count = sum(map(len, batch.values()))
        self._waiting_count -= count
        _batch_size.observe(count)
        return batch

    async def _query(self, tokens: str) -> list[Any] | None:
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

    async def _outcomes(self, batch: Batch, rows: list[Any] | None) -> Mapping[Question, Outcomes]:
        if rows is None:
            return dict.fromkeys(batch, DatabaseUnavailable())
        try:
            asked = {question: len(futures) for question, futures in batch.items()}
            return await self._answers.of(asked, {row[0]: Broadcast._make(row) for row in rows})
        except DatabaseUnavailable as problem:
            return dict.fromkeys(batch, problem)
        except Exception:  # noqa: BLE001 - a mistake of ours must not end the answering of everybody else
            _log.exception("answers_failed")
            return dict.fromkeys(batch, InternalError())

    async def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                await connection.close()


def _settle(batch: Batch, outcomes: Mapping[Question, Outcomes]) -> None:
    for question, futures in batch.items():
        answered = outcomes[question]
        own = answered if isinstance(answered, list) else itertools.repeat(answered)
        for future, outcome in zip(futures, own, strict=False):
            if not future.done():
                future.set_result(outcome)
