"""A database connection that many callers share: prepared statements through libpq, without the driver's cursors.

Source: PostgreSQL, "Asynchronous Command Processing" and "Pipeline Mode" of libpq.
"""

import asyncio
from typing import Final

import psycopg
from psycopg import sql

from soundmark.kit import open_transaction
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.link import STALE_ERRORS, Call, Link, Rows
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, TIMEOUT_ERRORS, describe_unavailable


class SharedConnection:
    """One connection outside the pool, opened at its first use and replaced after a failure, with many users at once.

    A connection that dies idle is noticed at once. If it is `planned_once`, the server makes one plan for a statement,
    whatever its parameters: for statements that only call functions, which have plans of their own.
    """

    def __init__(self, db: Database, *, timeout_s: float, planned_once: bool = False) -> None:
        self._db: Final = db
        self._planned_once: Final = planned_once
        self._timeout_s: Final = timeout_s
        self._opening: Final = asyncio.Lock()
        self._link: Link | None = None

    async def run(self, *calls: Call, is_repeatable: bool) -> list[Rows]:
        """Run the calls in one round trip, as one transaction, and return the rows of each.

        Each call sees what was committed before it began. The server prepares a statement at its first use. A caller
        that is cancelled leaves the calls running. Calls that are not `is_repeatable` are not repeated once they were
        sent: if their connection is lost or their time runs out, they may be committed all the same.

        Running calls while a transaction is open is an assertion failure.

        Raises: DatabaseUnavailable, also if they take longer than `timeout_s`; the error of the first call that fails.
        """
        open_transaction.assert_no_transaction("a round trip of its own")
        link: Link | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    link = await self._open()
                    return await link.send(calls)
                except TIMEOUT_ERRORS:
                    raise
                except (*CONNECTION_ERRORS, *STALE_ERRORS) as error:
                    if not is_repeatable and isinstance(error, CONNECTION_ERRORS):
                        raise
                    self._replace(link)
                    link = await self._open()
                    return await link.send(calls)
        except TimeoutError as error:
            if link is not None:
                link.lose(error)
            raise describe_unavailable(error) from error
        except (*CONNECTION_ERRORS, psycopg.errors.ReadOnlySqlTransaction) as error:
            raise describe_unavailable(error) from error

    async def aclose(self) -> None:
        """Close the connection; the next use opens another. Calls that are running fail."""
        if self._link is not None:
            self._link.lose(psycopg.OperationalError("closed"))

    def _replace(self, link: Link | None) -> None:
        """Give the next user another connection; those who wait for answers on this one still get them."""
        if link is not None and link is self._link:
            self._link = None
            link.retire()

    async def _open(self) -> Link:
        if self._link is None or not self._link.is_alive():
            async with self._opening:
                if self._link is None or not self._link.is_alive():
                    self._link = await self._connect()
        return self._link

    async def _connect(self) -> Link:
        connection = await self._db.dedicated_connection()
        try:
            # So that no statement runs on after its callers have left.
            limit = sql.Literal(f"{round(self._timeout_s * 1000)}ms")
            await connection.execute(sql.SQL("SET statement_timeout = {}").format(limit))
            if self._planned_once:
                await connection.execute("SET plan_cache_mode = force_generic_plan")
            return Link(connection)
        except BaseException:
            await connection.close()
            raise
