"""How long to wait before asking again, and when to stop."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from soundmark_sdk.failures import DeliveryFailure, ReceiverFailure

# The first pause; each later one is twice as long.
BACKOFF_BASE_S: Final = 0.25


@dataclass(slots=True)
class RetryBudget:
    """What one `resolve`, or one delivery, may still spend on retries, over all its requests together."""

    retries_left: int
    wait_left_s: float
    # Spreads receivers that failed together; nothing secret rests on it.
    jitter: Callable[[], float] = random.random
    _backoff_s: float = BACKOFF_BASE_S

    def spend(self, failure: ReceiverFailure | DeliveryFailure) -> float:
        """Return the seconds to wait before the next attempt, taken off the budget.

        Exponential backoff, shortened by up to half at random, and never shorter than the server asked for.

        Raises: the failure itself, at once, when it is not retryable, no retry is left, or the wait would be longer
            than what is left: waiting for part of it could only fail again.
        """
        wait_s = max(self._backoff_s * (1 - self.jitter() / 2), failure.retry_after_s or 0.0)
        if not failure.retryable or self.retries_left < 1 or wait_s > self.wait_left_s:
            raise failure
        self.retries_left -= 1
        self.wait_left_s -= wait_s
        self._backoff_s *= 2
        return wait_s
