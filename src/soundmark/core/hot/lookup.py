"""Batches of questions: those that arrive together share one query, which starts after the last of them arrived."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog
from prometheus_client import Histogram

from soundmark.core.hot.answers import Answers, Outcome, Question
from soundmark.core.store.codes.broadcasts import Broadcast, find_live
from soundmark.kit.http.responses.problems import DatabaseUnavailable, InternalError, Problem
from soundmark.kit.postgres.batching import Batcher
from soundmark.kit.postgres.database_server import DatabaseServer
from soundmark.kit.postgres.lease import Lease
from soundmark.kit.postgres.shared_connection import SharedConnection

_BATCH_MAX: Final = 256
_WAITING_MAX: Final = 8192  # Bounds memory; a longer queue means that the database is not keeping up.
QUERY_TIMEOUT_S: Final = 3.0
_SERVERS_TRIED: Final = 2
_log: Final = structlog.get_logger()
_batch_size: Final = Histogram(
    "soundmark_resolve_batch_size", "Tokens looked up by one query.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)


class BroadcastLookup:
    """Answers the questions of many callers with few queries, on a connection that it closes in the end.

    It answers only what the `lease` of the process covers, so an old primary is not read after a failover.

    The query for a question always starts after the question arrived, so it sees every revocation that was confirmed
    before. All answers of a batch are made before the first is returned; otherwise each would wake its caller's socket
    separately (bench/MEASURED.md).
    """

    def __init__(self, connection: SharedConnection, lease: Lease, answers: Answers) -> None:
        self._connection: Final = connection
        self._lease: Final = lease
        self._answers: Final = answers
        self._batcher: Final = Batcher(self._answer, size_max=_BATCH_MAX, waiting_max=_WAITING_MAX)

    def ask(self, question: Question) -> asyncio.Future[Outcome]:
        """Return the future of the answer, which is DatabaseUnavailable if the database does not respond."""
        return self._batcher.submit(question)

    async def aclose(self) -> None:
        """Stop answering and close the connection."""
        await self._batcher.aclose()
        await self._connection.aclose()

    async def _answer(self, questions: Sequence[Question]) -> Sequence[Outcome]:
        _batch_size.observe(len(questions))
        found = await self._find({question.token for question in questions})
        try:
            return await self._answers.of(questions, found)
        except Problem:
            raise
        except Exception:  # noqa: BLE001 - an error in our code must not stop the batcher for everybody else
            _log.exception("answers_failed")
            raise InternalError from None

    async def _find(self, tokens: set[str]) -> dict[str, Broadcast]:
        for _ in range(_SERVERS_TRIED):
            found, server = await self._read(tokens)
            # After the read, however long it took. That is early enough: the questions arrived before.
            if await self._lease.covers(server):
                return found
            await self._connection.aclose()  # The next one may reach the new primary.
        raise DatabaseUnavailable(headers={"retry-after": "1"})

    async def _read(self, tokens: set[str]) -> tuple[dict[str, Broadcast], DatabaseServer]:
        self._lease.anticipate()
        try:
            return await find_live(self._connection, tokens)
        except Exception as error:  # noqa: BLE001 - the callers get an answer, whatever happened
            _log.error("lookup_failed", error=type(error.__cause__ or error).__name__)
            raise DatabaseUnavailable from None
