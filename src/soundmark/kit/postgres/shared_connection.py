"""A database connection that many callers share: prepared statements through libpq, without the driver's cursors.

Source: PostgreSQL, "Asynchronous Command Processing" and "Pipeline Mode" of libpq.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Literal, LiteralString, NamedTuple

import psycopg
from psycopg import sql

from soundmark.kit import open_transaction
from soundmark.kit.clock import Clock
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.link import STALE_ERRORS, Call, Link, Rows
from soundmark.kit.postgres.transaction import CONNECTION_ERRORS, SESSION_ERRORS, TIMEOUT_ERRORS, describe_unavailable

Planning = Literal["free", "once", "once_by_index"]
_ONCE: Final[tuple[LiteralString, ...]] = ("SET plan_cache_mode = force_generic_plan",)
_PLANNING: Final[Mapping[Planning, tuple[LiteralString, ...]]] = {
    "free": (),
    "once": _ONCE,
    "once_by_index": (
        *_ONCE,
        "SET enable_bitmapscan = off",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
    ),
}


class Preface(NamedTuple):
    """A call that precedes the first calls of a connection, and again the next ones after `again_s`.

    Its rows say something of the server at the other end, which is true for the calls that follow.
    """

    call: Call
    again_s: float
    clock: Clock


class PrefacedRows(NamedTuple):
    """The rows of some calls, and the latest rows of the preface on the connection that answered them."""

    preface: Rows
    rows: list[Rows]


class SharedConnection:
    """One connection outside the pool, opened at its first use and replaced after a failure, with many users at once.

    A connection that dies idle is noticed at once. By `planning`, the server plans a statement as it likes; or once,
    whatever its parameters, for statements that only call functions, which have plans of their own; or once and by
    indexes alone, for statements that look up each value, whatever the statistics say.
    """

    def __init__(
        self, db: Database, *, timeout_s: float, preface: Preface | None = None, planning: Planning = "free"
    ) -> None:
        self._db: Final = db
        self._planning: Final = _PLANNING[planning]
        self._timeout_s: Final = timeout_s
        self._preface: Final = preface
        self._opening: Final = asyncio.Lock()
        self._link: Link | None = None
        # Of the link that answered it last.
        self._prefaced: tuple[Link | None, Rows, float] = (None, [], 0)

    async def run(self, *calls: Call, is_repeatable: bool) -> list[Rows]:
        """Run the calls in one round trip, as one transaction, and return the rows of each.

        Each call sees what was committed before it began. The server prepares a statement at its first use. A caller
        that is cancelled leaves the calls running. Calls that are not `is_repeatable` are not repeated once they were
        sent: if their connection is lost or their time runs out, they may be committed all the same.

        Running calls while a transaction is open is an assertion failure.

        Raises: DatabaseUnavailable, also if they take longer than `timeout_s`; the error of the first call that fails.
        """
        return (await self.run_prefaced(*calls, is_repeatable=is_repeatable)).rows

    async def run_prefaced(self, *calls: Call, is_repeatable: bool) -> PrefacedRows:
        """Do the same as `run`, and return the rows of the preface too."""
        open_transaction.assert_no_transaction("a round trip of its own")
        link: Link | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    link = await self._open()
                    return await self._send(link, calls)
                except TIMEOUT_ERRORS:
                    raise
                except (*CONNECTION_ERRORS, *STALE_ERRORS) as error:
                    if not is_repeatable and not isinstance(error, STALE_ERRORS):
                        raise
                    self._replace(link)
                    link = await self._open()
                    return await self._send(link, calls)
        except TimeoutError as error:
            if link is not None:
                link.lose(error)
            raise describe_unavailable(error) from error
        except CONNECTION_ERRORS as error:
            if isinstance(error, SESSION_ERRORS):
                self._replace(link)
            raise describe_unavailable(error) from error

    async def aclose(self) -> None:
        """Close the connection; the next use opens another. Calls that are running fail."""
        if self._link is not None:
            self._link.lose(psycopg.OperationalError("closed"))

    async def _send(self, link: Link, calls: Sequence[Call]) -> PrefacedRows:
        """Send the calls, behind the preface if it is due."""
        if self._preface is None:
            return PrefacedRows([], await link.send(calls))
        prefaced, rows, prefaced_at_s = self._prefaced
        now_s = self._preface.clock.monotonic_s()
        if prefaced is link and now_s - prefaced_at_s < self._preface.again_s:
            return PrefacedRows(rows, await link.send(calls))
        rows, *answers = await link.send((self._preface.call, *calls))
        self._prefaced = link, rows, now_s
        return PrefacedRows(rows, answers)

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
            is_direct = self._db.session.sends_startup  # Behind a pooler, the session may be another's next.
            if is_direct:
                # So that no statement runs on after its callers have left.
                limit = sql.Literal(f"{round(self._timeout_s * 1000)}ms")
                await connection.execute(sql.SQL("SET statement_timeout = {}").format(limit))
                for setting in self._planning:
                    await connection.execute(setting)
            return Link(connection, prepares=is_direct)
        except BaseException:
            await connection.close()
            raise
