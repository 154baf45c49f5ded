from collections.abc import Callable
from typing import get_args

import pytest
from soundmark_sdk import DeliveryFailure, Reason, ReceiverFailure
from soundmark_sdk.failures import Failure
from soundmark_sdk.retrying import BACKOFF_BASE_S, RetryBudget, check_limits, retry

from .stand_ins import FakeClock


def make_budget(retries: int = 5, wait_s: float = 10.0, chance: float = 0.0) -> RetryBudget:
    return RetryBudget(retries, wait_s, jitter=lambda: chance)


def make_failure(retry_after_s: float | None = None) -> ReceiverFailure:
    return ReceiverFailure("rate_limited", "Test.", retry_after_s=retry_after_s)


def test_only_rate_limits_and_temporary_trouble_are_retryable(subtests: pytest.Subtests) -> None:
    for reason in get_args(Reason):
        with subtests.test(reason=reason):
            assert ReceiverFailure(reason, "Test.").retryable is (reason in {"rate_limited", "temporarily_unavailable"})


@pytest.mark.parametrize("kind", [ReceiverFailure, DeliveryFailure])
def test_a_failure_reads_as_its_reason_and_explanation(kind: type[ReceiverFailure | DeliveryFailure]) -> None:
    assert str(kind("rate_limited", "Test.")) == "rate_limited: Test."


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.25, 0.5, 1.0]), (1.0, [0.125, 0.25, 0.5])])
def test_pauses_double_and_are_shortened_by_up_to_half(chance: float, waits: list[float]) -> None:
    budget = make_budget(chance=chance)
    assert [budget.spend(make_failure()) for _ in waits] == waits


def test_the_server_can_ask_for_a_longer_pause_but_not_for_a_shorter_one() -> None:
    budget = make_budget()
    assert budget.spend(make_failure(retry_after_s=3)) == 3
    assert budget.spend(make_failure(retry_after_s=0)) == 0.5


def test_a_retry_at_once_has_no_pause_and_does_not_lengthen_the_next() -> None:
    budget = make_budget()
    assert budget.spend(make_failure(retry_after_s=3), at_once=True) == 0
    assert budget.spend(make_failure()) == BACKOFF_BASE_S


def test_retries_are_counted() -> None:
    budget = make_budget(retries=1)
    budget.spend(make_failure(), at_once=True)
    failure = make_failure()
    with pytest.raises(ReceiverFailure) as raised:
        budget.spend(failure, at_once=True)
    assert raised.value is failure


def test_pauses_are_added_up() -> None:
    budget = make_budget(wait_s=5)
    budget.spend(make_failure(retry_after_s=3))
    with pytest.raises(ReceiverFailure):
        budget.spend(make_failure(retry_after_s=3))


class Attempts:
    """An action that raises these failures in turn, and then succeeds."""

    def __init__(self, *failures: Failure) -> None:
        self.failures = [*failures]

    async def __call__(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "done"


async def run(clock: FakeClock, attempts: Attempts, may_retry: Callable[[ReceiverFailure], bool]) -> str:
    return await retry(attempts, ReceiverFailure, may_retry=may_retry, budget=make_budget(), clock=clock)


async def test_an_action_is_repeated_after_each_pause(clock: FakeClock) -> None:
    assert await run(clock, Attempts(make_failure(), make_failure()), lambda _: True) == "done"
    assert clock.slept_s == [0.25, 0.5]


@pytest.mark.parametrize("failure", [make_failure(), DeliveryFailure("network", "Test.")])
async def test_a_failure_that_may_not_be_retried_ends_it_at_once(clock: FakeClock, failure: Failure) -> None:
    with pytest.raises(Failure) as raised:
        await run(clock, Attempts(failure), lambda _: False)
    assert raised.value is failure
    assert clock.slept_s == []


@pytest.mark.parametrize("limits", [(0.0, 1, 0.0), (1.0, 0, 0.0), (1.0, 1, -0.1)])
def test_impossible_limits_are_refused(limits: tuple[float, int, float]) -> None:
    timeout_s, attempts_max, retry_wait_max_s = limits
    with pytest.raises(ValueError, match="above 0"):
        check_limits(timeout_s, attempts_max=attempts_max, retry_wait_max_s=retry_wait_max_s)
