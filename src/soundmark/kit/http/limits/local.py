"""Rate limits: a number of requests for each subject, such as a client IP address, in each window."""

import math
from typing import Final, NamedTuple, Protocol

from soundmark.kit.clock import Clock

_SUBJECTS_MAX: Final = 200_000  # About 40 MB at most; beyond it, the older generation of windows is forgotten.


class LimitState(NamedTuple):
    """Whether a request is allowed, how many more are, and after how many seconds the window ends.

    `is_first_refused` is true for the first request over the limit, so that it can be logged once in a window.
    """

    is_allowed: bool
    remaining: int
    reset_s: int
    is_first_refused: bool = False


class RateLimit(Protocol):
    """A counter of requests by subject."""

    async def hit(self, subject: bytes) -> LimitState:
        """Count one request of `subject` and judge it."""
        ...

    async def look(self, subject: bytes) -> LimitState:
        """Return the state after the last request of `subject`, without counting; a new subject is allowed."""
        ...

    async def aclose(self) -> None:
        """Close the connections, if there are any."""
        ...


class LocalRateLimit:
    """A counter in this process: a window of `window_s` begins with a subject's first request.

    Two generations of windows are kept, and the older one is dropped as a whole, so that forgetting costs nothing and
    memory is bounded. docs/adr/0004 says why no library does this.
    """

    def __init__(self, quota: int, window_s: int, clock: Clock) -> None:
        self._quota: Final = quota
        self._window_s: Final = window_s
        self._clock: Final = clock
        self._young: dict[bytes, list[float]] = {}
        self._old: dict[bytes, list[float]] = {}
        self._turned_at_s = clock.monotonic_s()

    def count(self, subject: bytes) -> LimitState:
        """Count one request of `subject` and judge it."""
        now_s = self._clock.monotonic_s()
        if now_s - self._turned_at_s >= self._window_s or len(self._young) >= _SUBJECTS_MAX:
            self._old, self._young, self._turned_at_s = self._young, {}, now_s
        window = self._young.get(subject) or self._old.get(subject)
        if window is None or now_s >= window[0]:
            window = self._young[subject] = [now_s + self._window_s, 0]
        window[1] += 1
        left = self._quota - int(window[1])
        # The window has not ended, so this is at least one second.
        return LimitState(left >= 0, max(left, 0), math.ceil(window[0] - now_s), left == -1)

    def judge(self, subject: bytes) -> LimitState:
        """Return the state after the last request of `subject`, without counting; a new subject is allowed."""
        window = self._young.get(subject) or self._old.get(subject)
        now_s = self._clock.monotonic_s()
        if window is None or now_s >= window[0]:
            return LimitState(is_allowed=True, remaining=self._quota, reset_s=self._window_s)
        left = self._quota - int(window[1])
        return LimitState(left >= 0, max(left, 0), math.ceil(window[0] - now_s))

    async def hit(self, subject: bytes) -> LimitState:
        return self.count(subject)

    async def look(self, subject: bytes) -> LimitState:
        return self.judge(subject)

    async def aclose(self) -> None:
        pass
