"""The only source of time."""

import time
from datetime import UTC, datetime
from typing import Final, Protocol

# Unlike `time.monotonic`, Linux's clock goes on while the machine sleeps, so that what lasts for seconds ends in time.
_MONOTONIC: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """A source of time."""

    def now(self) -> datetime:
        """Return the wall clock in UTC, truncated to milliseconds, so that stored and signed times are equal."""
        ...

    def unix_s(self) -> float:
        """Return the wall clock in seconds since 1970, for code in which a `datetime` would be too slow."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds since some fixed moment; they never go back, whatever happens to the wall clock."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        moment = datetime.now(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def unix_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.clock_gettime(_MONOTONIC)
