"""The metrics of the transparency log: whether it is stopped, and how many entries wait.

The worker exports them, and so does every serving process: entries also wait because no worker runs.
"""

from typing import Final

from prometheus_client import Gauge

from soundmark.core.domain.log.state import StopReason
from soundmark.core.live.repeating import keep_reading
from soundmark.core.store.log import queue, state
from soundmark.kit.postgres.database import Database

READ_EVERY_S: Final = 15.0

# Of several processes, the one that has read last.
_stopped: Final = Gauge(
    "soundmark_log_stopped",
    "1 if the transparency log is stopped, which only an operator ends.",
    multiprocess_mode="livemostrecent",
)
_waiting: Final = Gauge(
    "soundmark_log_waiting_entries",
    "Entries that are not in the transparency log's tree yet.",
    multiprocess_mode="livemostrecent",
)


async def read_log_state(db: Database) -> tuple[StopReason | None, int]:
    """Export why the log is stopped, if it is, and how many entries wait; return both.

    Raises: DatabaseUnavailable.
    """
    async with db.transaction() as tx:
        log = await state.find(tx)
        waiting_count = await queue.count(tx)
        reason = None if log is None else log.stopped_reason
        _stopped.set(reason is not None)
        _waiting.set(waiting_count)
    return reason, waiting_count


async def keep_reading_log_state(db: Database) -> None:
    """Export the log's state until cancelled."""
    await keep_reading(lambda: read_log_state(db), every_s=READ_EVERY_S, failed="log_state_not_read")
