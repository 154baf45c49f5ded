"""A second database connection that alters rows, holds locks and knows who waits for them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, TypeVar

import psycopg

from soundmark.kit.secret import Secret

T = TypeVar("T")

# Two Cores that begin to seal the same new organisation's log wait for each other for a moment, whatever is tested.
_WAITS: Final = (
    "datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, 'INSERT INTO audit_heads') = 0"
)


class Rival:
    """A second connection of somebody who may everything: alters rows, holds locks, and knows who waits for them."""

    def __init__(self, url: Secret) -> None:
        self._url = url

    async def run(self, statement: str, *params: Any) -> int:
        """Carry out one statement; the number of rows it touched."""
        async with await psycopg.AsyncConnection.connect(self._url.reveal(), autocommit=True) as connection:
            cursor = await connection.execute(statement.encode(), params)
            return cursor.rowcount

    async def rows(self, statement: str, *params: Any) -> list[Any]:
        async with await psycopg.AsyncConnection.connect(self._url.reveal(), autocommit=True) as connection:
            cursor = await connection.execute(statement.encode(), params)
            return await cursor.fetchall()

    @contextlib.asynccontextmanager
    async def holding(self, statement: str, *params: Any) -> AsyncIterator[None]:
        """Hold the locks that one statement takes, until the block ends."""
        async with await psycopg.AsyncConnection.connect(self._url.reveal()) as connection:
            await connection.execute(statement.encode(), params)
            yield
            await connection.rollback()

    @contextlib.asynccontextmanager
    async def committing(self, statement: str, *params: Any) -> AsyncIterator[None]:
        """What one statement changes, not committed until the block ends."""
        async with await psycopg.AsyncConnection.connect(self._url.reveal()) as connection:
            await connection.execute(statement.encode(), params)
            yield
            await connection.commit()

    async def end_whoever_waits(self) -> int:
        """Cut the connection of who waits for a lock, as if its process had died; how many did, one at least.

        What runs beside the requests, such as the sealing of the audit log, may wait there too, and begins again.
        """
        ended = await self.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_WAITS}")
        assert ended >= 1
        return ended

    async def audited(self, action: str) -> list[tuple[str, str | None, dict[str, Any]]]:
        """Who did `action`, in which project and with what metadata, oldest first."""
        statement = "SELECT actor_type, actor_id, project_id, metadata FROM audit_entries WHERE action = %s ORDER BY {}"
        rows = await self.rows(statement.format("created_at"), action)
        return [(f"{kind} {actor}", project_id, json.loads(metadata)) for kind, actor, project_id, metadata in rows]

    async def while_waiting(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """The task of `work`, once it waits for a lock."""
        task = asyncio.create_task(work)
        await self.until_someone_waits()
        return task

    async def until_someone_waits(self, count: int = 1) -> None:
        """`count` others wait for locks in this database."""
        async with asyncio.timeout(60):
            while len(await self.rows(f"SELECT 1 FROM pg_stat_activity WHERE {_WAITS}")) < count:  # noqa: ASYNC110 - the event happens in PostgreSQL
                await asyncio.sleep(0.005)
