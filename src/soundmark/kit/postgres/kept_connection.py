"""A database connection that one owner keeps for itself."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import psycopg

from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, TIMEOUT_ERRORS, Tx, describe_unavailable

T = TypeVar("T")


class KeptConnection:
    """One connection outside the pool, opened at its first use and replaced after every failure.

    It has one user at a time, such as the batches of one queue. `prepare` gets each new connection first.
    """

    def __init__(
        self, db: Database, *, timeout_s: float, prepare: Callable[[Tx], Awaitable[None]] | None = None
    ) -> None:
        self._db: Final = db
        self._timeout_s: Final = timeout_s
        self._prepare: Final = prepare
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def run(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` with the connection in autocommit mode, and return its result; it may begin a transaction itself.

        A connection that died, for example in a restart of the server, looks alive until it is used. So if `work`
        raises because the connection was lost, it runs again on a new connection. If it may have committed by then, it
        must raise something else, as `Tx.ending` does.

        Raises: DatabaseUnavailable, also if `work` takes longer than `timeout_s`; whatever else `work` raises.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    return await work(await self._open())
                except TIMEOUT_ERRORS:
                    raise
                except CONNECTION_ERRORS:
                    await self.aclose()
                    return await work(await self._open())
        except (*CONNECTION_ERRORS, TimeoutError) as error:
            await self.aclose()
            raise describe_unavailable(error) from error
        except BaseException:
            # If its transaction is still open, the server rolls it back.
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close the connection; the next use opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                await connection.close()

    async def _open(self) -> Tx:
        if self._connection is None:
            self._connection = await self._db.dedicated_connection()
            if self._prepare is not None:
                await self._prepare(Tx(self._connection))
        return Tx(self._connection)
