"""Repeat a request after a failure: when, how often, and with which pauses."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from soundmark_sdk.clock import Clock
from soundmark_sdk.failures import Failure

T = TypeVar("T")
F = TypeVar("F", bound=Failure)

# The first pause; each later one is twice as long.
BACKOFF_BASE_S: Final = 0.25


@dataclass(slots=True)
class RetryBudget:
    """The retries and the waiting time that one call has left, over all of its requests."""

    retries_left: int
    wait_left_s: float
    # Spreads clients that failed at the same time; no secret depends on it.
    jitter: Callable[[], float] = random.random
    _backoff_s: float = BACKOFF_BASE_S

    def spend(self, failure: Failure, *, at_once: bool = False) -> float:
        """Take one retry and its pause off the budget, and return the pause in seconds.

        Pauses double each time, are shortened by up to half at random, and are never shorter than the server asked
        for. With `at_once` there is no pause.

        Raises: the failure itself, when no retry is left or the pause is longer than the time that is left. A shorter
            pause could only fail again.
        """
        wait_s = 0.0 if at_once else max(self._backoff_s * (1 - self.jitter() / 2), failure.retry_after_s or 0.0)
        if self.retries_left < 1 or wait_s > self.wait_left_s:
            raise failure
        self.retries_left -= 1
        self.wait_left_s -= wait_s
        self._backoff_s *= 1 if at_once else 2
        return wait_s


async def retry(
    act: Callable[[], Awaitable[T]],
    kind: type[F],
    *,
    may_retry: Callable[[F], bool],
    budget: RetryBudget,
    clock: Clock,
) -> T:
    """Call `act` until it succeeds, and return its result. Only failures of this kind may be retried.

    Raises: the failure that `may_retry` rejects, or that the budget does not cover.
    """
    while True:
        try:
            return await act()
        except kind as failure:
            if not may_retry(failure):
                raise
            wait_s = budget.spend(failure)
        await clock.sleep(wait_s)


def check_limits(*timeouts_s: float, attempts_max: int, retry_wait_max_s: float) -> None:
    """Accept only limits under which a call can be made.

    Raises: ValueError.
    """
    if min(timeouts_s) <= 0 or attempts_max < 1 or retry_wait_max_s < 0:
        raise ValueError("Timeouts must be above 0, attempts_max at least 1 and retry_wait_max_s at least 0.")
