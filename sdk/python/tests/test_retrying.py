from typing import get_args

import pytest
from soundmark_sdk import Reason, ReceiverFailure
from soundmark_sdk.retrying import BACKOFF_BASE_S, RetryBudget


def budget(retries: int = 5, wait_s: float = 10.0, chance: float = 0.0) -> RetryBudget:
    return RetryBudget(retries, wait_s, jitter=lambda: chance)


@pytest.mark.parametrize("reason", get_args(Reason))
def test_only_rate_limits_and_temporary_trouble_are_retried(reason: Reason) -> None:
    failure = ReceiverFailure(reason, "Test.")
    assert failure.retryable is (reason in {"rate_limited", "temporarily_unavailable"})
    if failure.retryable:
        assert budget().spend(failure) == BACKOFF_BASE_S
        return
    with pytest.raises(ReceiverFailure) as raised:
        budget().spend(failure)
    assert raised.value is failure


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.25, 0.5, 1.0]), (1.0, [0.125, 0.25, 0.5])])
def test_waits_double_and_are_shortened_by_up_to_half(chance: float, waits: list[float]) -> None:
    spending = budget(chance=chance)
    assert [spending.spend(ReceiverFailure("rate_limited", "Test.")) for _ in waits] == waits


def test_the_server_can_ask_for_longer_but_not_for_shorter() -> None:
    spending = budget()
    assert spending.spend(ReceiverFailure("rate_limited", "Test.", retry_after_s=3)) == 3
    assert spending.spend(ReceiverFailure("rate_limited", "Test.", retry_after_s=0)) == 0.5


def test_retries_are_counted() -> None:
    spending = budget(retries=1)
    spending.spend(ReceiverFailure("rate_limited", "Test."))
    with pytest.raises(ReceiverFailure):
        spending.spend(ReceiverFailure("rate_limited", "Test."))


def test_waits_are_summed() -> None:
    spending = budget(wait_s=5)
    spending.spend(ReceiverFailure("rate_limited", "Test.", retry_after_s=3))
    with pytest.raises(ReceiverFailure):
        spending.spend(ReceiverFailure("rate_limited", "Test.", retry_after_s=3))
