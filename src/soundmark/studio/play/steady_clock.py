"""The service's time, by which slots begin and Codes expire, whatever the machine's own clock shows."""

import asyncio
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2

from soundmark.kit.clock import Clock

# A `Date` header has whole seconds and has travelled; a smaller difference says nothing.
_TOLERANCE: Final = timedelta(seconds=2)


class SteadyClock:
    """Time that goes on with the machine's monotonic clock from the last time that the service stated.

    Setting the machine's clock therefore changes nothing. Until the service states a time, this begins with the
    machine's, but not before `not_before`: a clock without a battery begins in the past after a power cut.
    """

    def __init__(self, clock: Clock, not_before: datetime | None = None) -> None:
        self._clock: Final = clock
        self._since_s = clock.monotonic_s()
        self._then = clock.now() if not_before is None else max(clock.now(), not_before)

    def now(self) -> datetime:
        """Return the service's time, as well as it is known."""
        return self._then + timedelta(seconds=self._clock.monotonic_s() - self._since_s)

    def monotonic_s(self) -> float:
        """Return the machine's monotonic time."""
        return self._clock.monotonic_s()

    async def sleep(self, duration_s: float) -> None:
        """Let the event loop run for this long."""
        await asyncio.sleep(duration_s)

    def take_date(self, date: str) -> None:
        """Take the time that the service states in the `Date` header of a response; ignore a malformed one."""
        try:
            stated = parsedate_to_datetime(date)
        except ValueError:
            return
        if stated.tzinfo is not None and abs(stated - self.now()) > _TOLERANCE:
            self._since_s, self._then = self._clock.monotonic_s(), stated


class DatedTransport(httpx2.AsyncBaseTransport):
    """A transport that passes on what another one does, and takes the time from each response."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, clock: SteadyClock) -> None:
        self._inner: Final = inner
        self._clock: Final = clock

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        response = await self._inner.handle_async_request(request)
        self._clock.take_date(response.headers.get("date", ""))
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()
