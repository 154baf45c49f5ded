"""Replays: how often an organisation may have events sent again, and how many."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

# Contract, section 9: of one organisation.
REPLAYS_PER_MINUTE: Final = 10
REPLAYED_PER_DAY: Final = 100_000

_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ReplayCounts:
    """When an organisation's newest replays were answered, and how many deliveries they made on a UTC day."""

    replayed_at: Sequence[datetime]
    day: date
    deliveries_count: int

    def find_pause(self, now: datetime) -> timedelta | None:
        """Return how long the next replay has to wait; None if it may begin.

        The minute is the one that ends now. A replay that another process answered in the near future counts too, but
        not one that a clock which was set back makes lie further ahead.
        """
        recent = sorted(at for at in self.replayed_at if abs(now - at) < _MINUTE)
        if len(recent) < REPLAYS_PER_MINUTE:
            return None
        return recent[-REPLAYS_PER_MINUTE] + _MINUTE - now

    def count_left(self, now: datetime) -> int:
        """Return how many deliveries replays may make until midnight."""
        return REPLAYED_PER_DAY - (self.deliveries_count if self._is_of(now) else 0)

    def add(self, deliveries_count: int, now: datetime) -> "ReplayCounts":
        """Return the counts after a replay that was answered now."""
        newest = (*self.replayed_at[1 - REPLAYS_PER_MINUTE :], now)
        if self._is_of(now):
            return ReplayCounts(newest, self.day, self.deliveries_count + deliveries_count)
        return ReplayCounts(newest, now.date(), deliveries_count)

    def _is_of(self, now: datetime) -> bool:
        """Return whether the count is of today, or of tomorrow, which another process has reached already."""
        return self.day - now.date() in {timedelta(0), _DAY}


def find_midnight(now: datetime) -> datetime:
    """Return the end of the UTC day."""
    return datetime.combine(now.date() + _DAY, time(), UTC)
