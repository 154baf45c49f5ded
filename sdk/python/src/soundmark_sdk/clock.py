"""Time, in one place, so that a program or a test can replace it."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time and of pauses."""

    def now(self) -> datetime:
        """Return the current time, with a time zone. Signed times are compared with it."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds that never go back. The key cache measures ages with them."""
        ...

    async def sleep(self, duration_s: float) -> None:
        """Return after this many seconds: the pause before a retry."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        """Return the machine's UTC time."""
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        """Return the machine's monotonic time."""
        return time.monotonic()

    async def sleep(self, duration_s: float) -> None:
        """Let the event loop run for this long."""
        await asyncio.sleep(duration_s)
