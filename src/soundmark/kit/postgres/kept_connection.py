"""A database connection that one owner keeps for itself: transactions through libpq, without the driver's cursors."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import psycopg

from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.link import STALE_ERRORS, Link
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.postgres.sessions import HostsConnection
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, TIMEOUT_ERRORS, Tx, describe_unavailable

_CANCEL_TIMEOUT_S: Final = 1.0

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
        self._connection: HostsConnection | None = None
        self._link: Link | None = None

    async def run(self, work: Callable[[PipelinedTx], Awaitable[T]]) -> T:
        """Run `work` with the connection in autocommit mode, and return its result; it may begin a transaction itself.

        If `work` raises because the connection was lost, or because its server has forgotten a statement, it runs again
        on a new connection. If it may have committed by then, it must raise something else, as `PipelinedTx.ending`
        does.

        Raises: DatabaseUnavailable, also if `work` takes longer than `timeout_s`; whatever else `work` raises.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    return await work(await self._open())
                except TIMEOUT_ERRORS:
                    raise
                except (*CONNECTION_ERRORS, *STALE_ERRORS):
                    await self.aclose()
                    return await work(await self._open())
        except CONNECTION_ERRORS as error:
            await self.aclose()
            raise describe_unavailable(error) from error
        except (TimeoutError, asyncio.CancelledError) as error:
            await self._cancel()
            if isinstance(error, TimeoutError):
                raise describe_unavailable(error) from error
            raise
        except BaseException:
            # If its transaction is still open, the server rolls it back.
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close the connection; the next use opens another."""
        link, self._link, self._connection = self._link, None, None
        if link is not None:
            link.lose(psycopg.OperationalError("closed"))

    async def _cancel(self) -> None:
        """Stop what the server is doing for us, as far as it is not done, and close the connection."""
        try:
            if self._connection is not None:
                with contextlib.suppress(psycopg.Error):
                    await self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
        finally:
            await self.aclose()

    async def _open(self) -> PipelinedTx:
        if self._link is None or not self._link.is_alive():
            self._connection = connection = await self._db.dedicated_connection()
            try:
                if self._prepare is not None:
                    await self._prepare(Tx(connection))
                self._link = Link(connection, prepares=self._db.session.sends_startup)
            except BaseException:
                await connection.close()
                raise
        return PipelinedTx(self._link)
