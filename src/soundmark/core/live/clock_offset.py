"""How far this machine's clock is from that of the primary, by which every process should judge expiry alike."""

import asyncio
from typing import Final

import structlog
from prometheus_client import Gauge

from soundmark.kit.clock import Clock
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.database_server import read_server
from soundmark.kit.postgres.promotions import Promotions

MEASURE_EVERY_S: Final = 60.0
WARN_FROM_S: Final = 1.0
# A process this far off answers that a Code has expired, or has not, against the clocks of all others.
NOT_READY_FROM_S: Final = 30.0

# The processes of one machine share its clock.
_offset_s: Final = Gauge(
    "soundmark_clock_offset_seconds",
    "How far the clock of this machine is ahead of the database's; negative if it is behind.",
    multiprocess_mode="livemostrecent",
)
_log: Final = structlog.get_logger()


class ClockOffset:
    """Compares the clocks now and then, and exports the offset."""

    def __init__(self, db: Database, clock: Clock, promotions: Promotions) -> None:
        self._db: Final = db
        self._clock: Final = clock
        self._promotions: Final = promotions
        self._certain_s = 0.0

    async def is_right(self) -> bool:
        """Return whether the clocks differ by less than `NOT_READY_FROM_S`."""
        return self._certain_s < NOT_READY_FROM_S

    async def keep_measuring(self) -> None:
        """Measure until cancelled. While the database does not answer, the last offset stays."""
        while True:
            await asyncio.sleep(MEASURE_EVERY_S)
            try:
                await self.measure()
            except DatabaseUnavailable:
                pass  # Readiness and every request report it.
            except Exception as error:  # noqa: BLE001 - if this loop ended, a wrong clock would not be noticed
                _log.error("clock_not_compared", error=type(error).__name__, exc_info=error)

    async def measure(self) -> None:
        """Compare the clocks, and note which server is the primary.

        Raises: DatabaseUnavailable.
        """
        async with self._db.snapshot() as tx:
            self._promotions.see(await read_server(tx))
            sent_at_s, began_s = self._clock.unix_s(), self._clock.monotonic_s()
            database_s: float = await tx.value("SELECT extract(epoch FROM clock_timestamp())::double precision")
            half_trip_s = (self._clock.monotonic_s() - began_s) / 2
        offset_s = sent_at_s + half_trip_s - database_s
        _offset_s.set(offset_s)
        # The database read its clock at some moment of the round trip, so a slow one makes no clock wrong.
        self._certain_s = max(0.0, abs(offset_s) - half_trip_s)
        if self._certain_s >= WARN_FROM_S:
            _log.warning("clock_offset", offset_s=round(offset_s, 3))
