"""The metrics of draft invoices: how many there are by outcome, how many wait, and for how long.

Workers make the drafts and serve no metrics. So every serving process reads the counts from the database.
"""

import asyncio
from typing import Final, get_args

import structlog
from prometheus_client import Gauge

from soundmark.core.domain.billing.accounting import DraftStatus
from soundmark.core.store.billing import outbox
from soundmark.kit.clock import Clock
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import EVERY_TENANT, Database

COUNT_EVERY_S: Final = 60.0  # The statement reads each payment of all times once.

# Of several processes, the one that has counted last.
_drafts: Final = Gauge(
    "soundmark_draft_invoices", "Draft invoices, by status.", ["status"], multiprocess_mode="livemostrecent"
)
_oldest_s: Final = Gauge(
    "soundmark_draft_invoices_oldest_seconds",
    "Age of the oldest draft invoice that is neither completed nor failed; 0 without one.",
    multiprocess_mode="livemostrecent",
)
_log: Final = structlog.get_logger()


class DraftCounts:
    """Counts draft invoices now and then, and exports the numbers."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db: Final = db
        self._clock: Final = clock

    async def keep_counting(self) -> None:
        """Count until cancelled. If counting fails, the last numbers stay until it succeeds."""
        known_trouble: type[Exception] | None = None
        while True:
            try:
                await self.count()
                known_trouble = None
            except DatabaseUnavailable:
                pass  # Readiness and every request report it.
            except Exception as error:  # noqa: BLE001 - if this loop ended, the numbers would stay as they are for ever
                if type(error) is not known_trouble:
                    known_trouble = type(error)
                    _log.error("draft_invoices_not_counted", error=known_trouble.__name__, exc_info=error)
            await asyncio.sleep(COUNT_EVERY_S)

    async def count(self) -> None:
        """Count, and export the numbers.

        Raises: DatabaseUnavailable.
        """
        async with self._db.snapshot(tenant=EVERY_TENANT) as tx:
            counted = {each.status: each for each in await outbox.count_by_status(tx)}
        for status in get_args(DraftStatus):
            _drafts.labels(status).set(counted[status].count if status in counted else 0)
        waiting = [each.oldest_at for status, each in counted.items() if status in {"pending", "processing"}]
        age_s = (self._clock.now() - min(waiting)).total_seconds() if waiting else 0.0
        _oldest_s.set(max(0.0, age_s))
