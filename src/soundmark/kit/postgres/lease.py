"""The right of a process to answer from a server: a write there that synchronous standbys have just confirmed.

A standby that was promoted confirms nothing to the old primary. So a process that still reads the old primary stops
answering at most `LEASE_S` after the promotion, whatever the failover software does. docs/adr/0038 has the proof.
"""

import asyncio
import contextlib
from typing import Final, LiteralString

import structlog

from soundmark.kit.clock import Clock
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.database_server import DESCRIBE_SERVER, DatabaseServer
from soundmark.kit.postgres.kept_connection import KeptConnection
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.postgres.promotions import LEASE_S, Promotions
from soundmark.kit.tasks import cancel_and_wait

RENEW_EVERY_S: Final = 1.0
_RETRY_AFTER_S: Final = 0.25
# After this time, another connection tries: a new one may reach the new primary.
_CONFIRM_TIMEOUT_S: Final = 2.0
# Answers wait this long for a renewal, for example the first ones after a pause without lookups.
_PATIENCE_S: Final = 1.0
# The message is in the log of changes and nowhere else, so nothing grows and nothing needs a VACUUM. As a part of its
# transaction it makes the commit wait for the standbys.
_WRITE: Final[LiteralString] = (
    DESCRIBE_SERVER
    + """,
           CASE WHEN NOT pg_is_in_recovery() AND current_setting('synchronous_standby_names') <> ''
                THEN pg_logical_emit_message(true, 'soundmark.lease', '') END
    """
)
_log: Final = structlog.get_logger()


class Lease:
    """Renews the lease of this process while somebody needs it, at most once a second.

    Without lookups, or on a server without synchronous standbys, it writes nothing and opens no connection.
    """

    def __init__(self, db: Database, clock: Clock, promotions: Promotions, *, lease_s: float = LEASE_S) -> None:
        self._db: Final = db
        self._clock: Final = clock
        self._promotions: Final = promotions
        self._lease_s: Final = lease_s
        self._confirmed_by: DatabaseServer | None = None
        self._holds_until_s = float("-inf")
        self._is_needed = False
        self._wanted: Final = asyncio.Event()
        self._attempted = asyncio.Event()
        self._connection = self._make_connection()
        self._abandoned: Final[set[asyncio.Task[DatabaseServer]]] = set()
        self._is_missing = False

    def anticipate(self) -> None:
        """Renew the lease, if it was needed before, while its user does something else."""
        if self._is_needed:
            self._wanted.set()

    async def covers(self, server: DatabaseServer) -> bool:
        """Return whether this process may answer with what it has read from `server`. Call it after the read.

        It waits shortly for a renewal. False means that `server` may no longer be the primary: read on another
        connection.
        """
        self._promotions.see(server)
        self._is_needed = server.has_synchronous_standby
        if server.is_standby or not server.has_synchronous_standby:
            return not server.is_standby
        self._wanted.set()
        if not self._holds(server) and not self._holds_elsewhere(server):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._attempted.wait()
        is_covered = self._holds(server)
        if is_covered == self._is_missing:
            self._is_missing = not is_covered
            _log.warning("lease_regained" if is_covered else "lease_missing")
        return is_covered

    async def keep_renewing(self) -> None:
        """Renew the lease whenever it is wanted, until cancelled."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                is_renewed = await self._renew()
                # Wakes those who wait now; whoever comes later waits for the next attempt.
                self._attempted.set()
                self._attempted = asyncio.Event()
                await asyncio.sleep(RENEW_EVERY_S if is_renewed else _RETRY_AFTER_S)
        finally:
            for task in list(self._abandoned):
                await cancel_and_wait(task)
            await self._connection.aclose()

    def _holds(self, server: DatabaseServer) -> bool:
        return self._is_current() and server.is_same_run(self._confirmed_by)

    def _holds_elsewhere(self, server: DatabaseServer) -> bool:
        return self._is_current() and not server.is_same_run(self._confirmed_by)

    def _is_current(self) -> bool:
        return self._clock.monotonic_s() < self._holds_until_s

    async def _renew(self) -> bool:
        # The lease counts from before the write: the standbys were still standbys when they confirmed it.
        sent_at_s = self._clock.monotonic_s()
        task = asyncio.create_task(self._connection.run(self._write), name="lease-write")
        try:
            done, _ = await asyncio.wait({task}, timeout=_CONFIRM_TIMEOUT_S)
        except asyncio.CancelledError:
            await cancel_and_wait(task)
            raise
        if not done:
            self._abandon(task)
            return False
        try:
            server = task.result()
        except DatabaseUnavailable:
            return False
        except Exception as error:  # noqa: BLE001 - if this loop ended, no lookup would be answered any more
            _log.error("lease_not_renewed", error=type(error).__name__, exc_info=error)
            return False
        self._promotions.see(server)
        self._confirmed_by, self._holds_until_s = server, sent_at_s + self._lease_s
        return not server.is_standby

    def _abandon(self, task: asyncio.Task[DatabaseServer]) -> None:
        """Leave a write that nobody confirms, and its connection; cancelling it at the server may take seconds."""
        self._abandoned.add(task)
        task.add_done_callback(self._forget)
        task.cancel()
        self._connection = self._make_connection()

    def _forget(self, task: asyncio.Task[DatabaseServer]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()

    def _make_connection(self) -> KeptConnection:
        # Its own time limit is longer than ours, so that it never decides.
        return KeptConnection(self._db, timeout_s=_CONFIRM_TIMEOUT_S * 2)

    async def _write(self, tx: PipelinedTx) -> DatabaseServer:
        """Write, and return the server that confirmed it."""
        ((*described, _),) = await tx.rows(_WRITE)
        return DatabaseServer._make(described)
