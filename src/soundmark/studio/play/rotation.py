"""The slots of time in which rotated Codes sound."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

from soundmark.studio.play.schedule import Schedule

# A Code stays valid for so long after its slot: a receiver that heard its last sound still has to resolve it.
GRACE: Final = timedelta(seconds=60)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Rotation:
    """Slots of `every`, counted from 1970, so that a restarted agent finds itself in the same slot.

    `outage` is how long the Codes that were issued ahead last without the service.
    """

    every: timedelta
    outage: timedelta

    def slot_at(self, moment: datetime) -> int:
        """Return the slot that a time is in."""
        return (moment - _EPOCH) // self.every

    def begin_of(self, slot: int) -> datetime:
        """Return when a slot begins."""
        return _EPOCH + slot * self.every

    def end_of(self, slot: int) -> datetime:
        """Return when a slot ends, which is when the next one begins."""
        return self.begin_of(slot + 1)

    def find_openings(self, moment: datetime, schedule: Schedule) -> Iterator[datetime]:
        """Yield, without end, the first time from `moment` on at which a schedule is open in each slot."""
        while True:
            moment = schedule.find_opening(moment)
            yield moment
            moment = self.end_of(self.slot_at(moment))

    def slots_ahead(self, now: datetime, schedule: Schedule) -> Iterator[int]:
        """Yield this slot and those that begin within the outage, unless a schedule is closed for their whole time."""
        last = self.slot_at(now + self.outage)
        return takewhile(lambda slot: slot <= last, map(self.slot_at, self.find_openings(now, schedule)))

    def count_slots_a_day(self, now: datetime, schedule: Schedule) -> int:
        """Return how many slots a day of the next week has, in the mean, in which a schedule is open."""
        begin = self.begin_of(self.slot_at(now))
        openings = takewhile(lambda opening: opening < begin + _WEEK, self.find_openings(begin, schedule))
        return -(-sum(1 for _ in openings) // _WEEK.days)
