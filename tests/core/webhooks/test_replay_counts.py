"""What counts of an organisation's replays, whatever the clocks do."""

from datetime import UTC, date, datetime, timedelta
from typing import Final

import pytest

from soundmark.core.domain.webhooks.replay import (
    REPLAYED_PER_DAY,
    REPLAYS_PER_MINUTE,
    ReplayCounts,
    find_midnight,
)

NOW: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
TODAY: Final = NOW.date()


def test_the_limits_are_those_of_the_contract() -> None:
    assert (REPLAYS_PER_MINUTE, REPLAYED_PER_DAY) == (10, 100_000)


def test_the_minute_is_the_one_that_ends_now() -> None:
    """Whenever ten were answered, the next one waits until the first of them is a minute old."""
    counts = ReplayCounts((), TODAY, 0)
    for number in range(12):
        now = NOW + timedelta(seconds=number)
        assert (counts.find_pause(now) is None) == (number < 10)
        if number < 10:
            counts = counts.add(0, now)
    assert counts.find_pause(NOW + timedelta(seconds=59)) == timedelta(seconds=1)
    assert counts.find_pause(NOW + timedelta(seconds=60)) is None
    counts = counts.add(0, NOW + timedelta(seconds=60))
    assert len(counts.replayed_at) == REPLAYS_PER_MINUTE
    assert counts.find_pause(NOW + timedelta(seconds=60)) == timedelta(seconds=1)


def test_replays_of_a_process_whose_clock_is_ahead_count() -> None:
    ahead = ReplayCounts((NOW + timedelta(seconds=1),) * 10, TODAY, 0)
    assert ahead.find_pause(NOW) == timedelta(seconds=61)


def test_a_clock_that_was_set_back_lets_replays_begin() -> None:
    set_back = ReplayCounts((NOW + timedelta(hours=1),) * 10, TODAY + timedelta(days=2), 100_000)
    assert set_back.find_pause(NOW) is None
    assert set_back.count_left(NOW) == REPLAYED_PER_DAY
    assert set_back.add(7, NOW).day == TODAY


@pytest.mark.parametrize(("days", "left"), [(-1, 100_000), (0, 40_000), (1, 40_000)])
def test_a_day_ends_at_midnight_once_the_first_process_has_reached_it(days: int, left: int) -> None:
    """A process whose clock is behind adds to the new day, so the two cannot reset each other's count."""
    counts = ReplayCounts((), TODAY + timedelta(days=days), 60_000)
    assert counts.count_left(NOW) == left
    added = counts.add(1, NOW)
    assert (added.day, added.count_left(NOW)) == (max(counts.day, TODAY), left - 1)


def test_midnight_is_that_of_the_utc_day() -> None:
    assert find_midnight(datetime(2026, 11, 20, tzinfo=UTC)) == datetime(2026, 11, 21, tzinfo=UTC)
    assert find_midnight(datetime(2026, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)).date() == date(2027, 1, 1)
