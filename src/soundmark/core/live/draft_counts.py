"""The metrics of draft invoices: how many there are by outcome, how many wait, and for how long.

Workers make the drafts and serve no metrics. So every serving process reads the counts from the database.
"""

from typing import Final, get_args

from prometheus_client import Gauge

from soundmark.core.domain.billing.accounting import DraftStatus
from soundmark.core.live.repeating import keep_reading
from soundmark.core.store.billing import outbox
from soundmark.kit.clock import Clock
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


class DraftCounts:
    """Counts draft invoices now and then, and exports the numbers."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db: Final = db
        self._clock: Final = clock

    async def keep_counting(self) -> None:
        """Count until cancelled."""
        await keep_reading(self.count, every_s=COUNT_EVERY_S, failed="draft_invoices_not_counted")

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
