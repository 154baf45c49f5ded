"""A second database connection that alters rows, holds locks and knows who waits for them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, TypeVar

import psycopg

from soundmark.kit.crypto.secret import Secret
from support.database.connections import borrow_async

T = TypeVar("T")

# Takes an advisory lock that nothing else takes.
COMMITTING: Final = "SELECT pg_advisory_xact_lock(6)"

# Sessions that wait for a lock: those behind the holders, directly or in a queue; without holders, all. Two Cores that
# start to seal the log of one new organisation wait for each other for a moment, in any test.
_WAITING: Final = """
WITH RECURSIVE waiting AS (
    SELECT pid, pg_blocking_pids(pid) AS blockers FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
        AND strpos(query, 'INSERT INTO audit_heads') = 0
), behind AS (
    SELECT pid FROM waiting WHERE cardinality(%(holders)s::int[]) = 0 OR blockers && %(holders)s::int[]
    UNION SELECT waiting.pid FROM waiting JOIN behind ON behind.pid = ANY (waiting.blockers)
)
SELECT pid FROM behind
"""


class Rival:
    """A second connection with every right: it alters rows, holds locks, and knows who waits for them."""

    def __init__(self, url: Secret) -> None:
        self._url = url
        self._holders: list[int] = []  # The backends of the blocks that hold locks now.

    async def run(self, statement: str, *params: Any) -> int:
        """Run one statement and return the number of rows that it touched."""
        async with borrow_async(self._url) as connection:
            cursor = await connection.execute(statement.encode(), params)
            return cursor.rowcount

    async def rows(self, statement: str, *params: Any) -> list[Any]:
        async with borrow_async(self._url) as connection:
            cursor = await connection.execute(statement.encode(), params)
            return await cursor.fetchall()

    async def explain(self, role: str, organization_id: str, statement: str, *params: Any) -> str:
        """Return the plan of a statement of a tenant, by whatever index there is, as `role` may see the rows."""
        async with borrow_async(self._url) as connection, connection.transaction(force_rollback=True):
            await connection.execute("SELECT set_config('role', %s, true)", [role])
            await connection.execute("SELECT set_config('soundmark.tenant', %s, true)", [organization_id])
            await connection.execute("SET LOCAL enable_seqscan = off")
            cursor = await connection.execute(f"EXPLAIN {statement}".encode(), params)
            return "\n".join([line for (line,) in await cursor.fetchall()])

    @contextlib.asynccontextmanager
    async def _holder(self) -> AsyncIterator[psycopg.AsyncConnection]:
        async with borrow_async(self._url) as connection:
            pid = connection.info.backend_pid
            self._holders.append(pid)
            try:
                yield connection
            finally:
                self._holders.remove(pid)

    @contextlib.asynccontextmanager
    async def holding(self, statement: str, *params: Any) -> AsyncIterator[None]:
        """Hold the locks that one statement takes until the block ends."""
        async with self._holder() as connection, connection.transaction(force_rollback=True):
            await connection.execute(statement.encode(), params)
            yield

    @contextlib.asynccontextmanager
    async def committing(self, statement: str, *params: Any) -> AsyncIterator[None]:
        """Run one statement and commit it when the block ends."""
        async with self._holder() as connection, connection.transaction():
            await connection.execute(statement.encode(), params)
            yield

    @contextlib.asynccontextmanager
    async def refusing(self, table: str, *, unless: str = "false") -> AsyncIterator[None]:
        """Have PostgreSQL refuse each row written to a table, unless a condition holds, until the block ends."""
        await self.run(f"ALTER TABLE {table} ADD CONSTRAINT refusing CHECK ({unless}) NOT VALID")
        try:
            yield
        finally:
            await self.run(f"ALTER TABLE {table} DROP CONSTRAINT refusing")

    @contextlib.asynccontextmanager
    async def pausing_commits(self, change: str) -> AsyncIterator[None]:
        """Make commits that contain a change, such as `INSERT ON closures`, wait for the lock of `COMMITTING`.

        A process that is killed meanwhile does not learn of its commit, which PostgreSQL completes.
        """
        await self.run(
            "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM ({COMMITTING}); RETURN NULL; END $$"
        )
        try:
            await self.run(
                f"CREATE CONSTRAINT TRIGGER pausing AFTER {change} DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION pause()"
            )
            yield
        finally:
            await self.run("DROP FUNCTION pause CASCADE")

    async def kill_waiting_sessions(self) -> int:
        """Cut the connections that wait for a lock, as if their processes had died; return how many, one at least.

        Where this rival holds locks, only those that wait for them: a queue of jobs or a background task may wait for
        another for a moment.
        """
        waiting = await self._waiting_pids()
        # Until they are gone: a session that is being ended is still listed as waiting.
        ended = await self.run("SELECT pg_terminate_backend(pid, 10000) FROM unnest(%s::int[]) AS pid", waiting)
        assert ended >= 1
        return ended

    async def _waiting_pids(self) -> list[int]:
        async with borrow_async(self._url) as connection:
            cursor = await connection.execute(_WAITING, {"holders": self._holders})
            return [pid for (pid,) in await cursor.fetchall()]

    async def audited(self, action: str) -> list[tuple[str, str | None, dict[str, Any]]]:
        """Return who did `action`, in which project and with what metadata, oldest first."""
        statement = "SELECT actor_type, actor_id, project_id, metadata FROM audit_entries WHERE action = %s ORDER BY {}"
        rows = await self.rows(statement.format("created_at"), action)
        return [(f"{kind} {actor}", project_id, json.loads(metadata)) for kind, actor, project_id, metadata in rows]

    async def while_waiting(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start `work` and return its task once it waits for a lock."""
        task = asyncio.create_task(work)
        await self.until_someone_waits()
        return task

    async def until_found(self, statement: str, *params: Any) -> None:
        """Wait until a query returns a row."""
        async with asyncio.timeout(60):
            while not await self.rows(statement, *params):  # noqa: ASYNC110 - the event happens in PostgreSQL
                await asyncio.sleep(0.01)

    async def until_rows(self, statement: str, *rows: tuple[Any, ...]) -> None:
        """Wait until a query returns exactly these rows, or none."""
        async with asyncio.timeout(60):
            while await self.rows(statement) != list(rows):  # noqa: ASYNC110 - the event happens in PostgreSQL
                await asyncio.sleep(0.01)

    async def until_someone_waits(self, count: int = 1) -> None:
        """Wait until `count` others wait in this database: for the locks that this rival holds, if it holds any."""
        async with asyncio.timeout(60):
            while len(await self._waiting_pids()) < count:  # noqa: ASYNC110 - the event happens in PostgreSQL
                await asyncio.sleep(0.005)
