"""Time as the receiver sees it, in one place, so that it can be replaced."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The three things that the receiver asks of time."""

    def now(self) -> datetime:
        """Return the present instant, with a time zone: what signed times are judged against."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds that never go back: what the key cache ages by."""
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
