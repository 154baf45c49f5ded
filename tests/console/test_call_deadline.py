"""The moment at which the calls to Core of one visit end."""

import asyncio

import pytest

from soundmark.console.call_deadline import CallDeadline


async def test_it_has_passed_once_a_timeout_has_ended_a_call() -> None:
    """uvloop, which serves the console, ends half of these timeouts a little early."""
    for number in range(50):
        deadline = CallDeadline(0.003 + number / 50_000)
        assert not deadline.has_passed
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(deadline.end_s):
                await asyncio.Event().wait()
        assert deadline.has_passed


async def test_nothing_ends_while_it_is_lifted() -> None:
    deadline = CallDeadline(0)
    with deadline.lifted():
        assert not deadline.has_passed
        assert deadline.end_s is None
    assert deadline.has_passed
