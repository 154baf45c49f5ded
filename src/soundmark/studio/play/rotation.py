"""The slots of time in which rotated Codes sound."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

# A Code stays valid for so long after its slot: a receiver that heard its last sound still has to resolve it.
GRACE: Final = timedelta(seconds=60)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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

    def slots_ahead(self, now: datetime) -> Iterator[int]:
        """Yield this slot and those that begin within the outage."""
        yield from range(self.slot_at(now), self.slot_at(now + self.outage) + 1)
