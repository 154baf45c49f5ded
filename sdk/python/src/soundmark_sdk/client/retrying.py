"""How long to wait before a call is sent again, and when to stop."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from soundmark_sdk.client.failures import AnswerMalformed, ApiProblem, ClientFailure, ServiceUnreachable
from soundmark_sdk.retrying import BACKOFF_BASE_S

_LIMITED: Final = 429
_FAULT: Final = 500
# The month's quota, and that of events: waiting seconds does not help.
_NOT_A_PAUSE: Final = frozenset({"quota_exceeded", "event_quota_exceeded"})


def is_nothing_done(failure: ClientFailure) -> bool:
    """Whether the service did nothing and may do it later: it asked for a pause, or there was no connection."""
    if isinstance(failure, ServiceUnreachable):
        return not failure.was_sent
    return isinstance(failure, ApiProblem) and failure.status == _LIMITED and failure.code not in _NOT_A_PAUSE


def is_unsure(failure: ClientFailure) -> bool:
    """Whether nobody can tell if the service did what it was asked."""
    match failure:
        case ApiProblem():
            return failure.status >= _FAULT
        case ServiceUnreachable():
            return failure.was_sent
        case _:
            return isinstance(failure, AnswerMalformed)


@dataclass(slots=True)
class CallBudget:
    """What one call of the caller may still spend on requests and on waiting between them."""

    attempts_left: int
    wait_left_s: float
    # Spreads clients that failed together; nothing secret rests on it.
    jitter: Callable[[], float] = random.random
    _backoff_s: float = BACKOFF_BASE_S

    def begin(self) -> None:
        """Take one attempt; there is one, or `wait_s` would have raised."""
        assert self.attempts_left > 0, "a budget begins with at least one attempt"
        self.attempts_left -= 1

    def wait_s(self, failure: ClientFailure, *, at_once: bool = False) -> float:
        """Return the seconds to wait after a failure, taken off the budget.

        Exponential backoff, shortened by up to half at random, and never shorter than the service asked for; none
        with `at_once`.

        Raises: the failure, when no attempt is left or the wait would be longer than what is left.
        """
        asked_s = (failure.retry_after_s or 0.0) if isinstance(failure, ApiProblem) else 0.0
        wait_s = 0.0 if at_once else max(self._backoff_s * (1 - self.jitter() / 2), asked_s)
        if self.attempts_left < 1 or wait_s > self.wait_left_s:
            raise failure
        self.wait_left_s -= wait_s
        self._backoff_s *= 1 if at_once else 2
        return wait_s
