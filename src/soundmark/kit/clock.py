"""The one place where time enters."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the rest of the program may ask about time."""

    def now(self) -> datetime:
        """The wall clock in UTC, cut to whole milliseconds: what is stored equals what is signed."""
        ...

    def unix_s(self) -> float:
        """The wall clock in seconds since 1970, for where a `datetime` would cost more than what it is used for."""
        ...

    def monotonic_s(self) -> float:
        """Seconds since some fixed moment; never goes back, whatever happens to the wall clock."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        moment = datetime.now(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def unix_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()
