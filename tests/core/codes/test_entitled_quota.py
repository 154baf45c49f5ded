"""Which of an organisation's quotas counts, and what an issuance leaves of it."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.core.domain.codes.quota import STARTER_PLAN_ID, CodeEntitlement, Quota

NOW: Final = datetime(2026, 11, 23, tzinfo=UTC)
TICK: Final = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("floor", "ends_at", "quota"),
    [(None, None, 100), (3, None, 3), (500, None, 500), (500, NOW + TICK, 500), (500, NOW, 100)],
)
def test_an_operators_quota_replaces_the_plans_until_it_ends(
    floor: int | None, ends_at: datetime | None, quota: int
) -> None:
    assert CodeEntitlement(100, floor, ends_at).monthly_quota(NOW) == quota


@pytest.mark.parametrize(
    ("floor", "ends_at", "subscribed", "quota"),
    [
        *((None, None, (1000, 7), 1000), (None, None, (7,), 100), (5, None, (1000,), 1000), (5, None, (3, 7), 7)),
        *((0, None, (), 0), (5000, None, (1000,), 5000), (5000, NOW, (1000,), 1000)),
    ],
)
def test_the_highest_quota_counts_and_the_floor_replaces_that_of_starter(
    floor: int | None, ends_at: datetime | None, subscribed: tuple[int, ...], quota: int
) -> None:
    assert CodeEntitlement(100, floor, ends_at).monthly_quota(NOW, subscribed=subscribed) == quota


@pytest.mark.parametrize(
    ("issued", "quota", "reached"),
    [
        (79, 100, []),
        (80, 100, [80]),
        (99, 100, [80]),
        (100, 100, [80, 100]),
        (799, 1000, []),
        (800, 1000, [80]),
        (0, 0, [80, 100]),
    ],
)
def test_80_and_100_per_cent_of_the_quota_are_reached_exactly(issued: int, quota: int, reached: list[int]) -> None:
    assert Quota(quota, issued, NOW).list_reached() == reached


def test_an_issuance_is_counted_in_its_month() -> None:
    quota = Quota(monthly_quota=10, issued_count=4, at=NOW)
    assert quota.month.first_day == NOW.replace(day=1).date()
    assert (quota.after(3), quota.after(3).remaining) == (Quota(10, 7, NOW), 3)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.integers(0, 9), st.integers(0, 9))  # noqa: DTZ001 - hypothesis takes bounds without a zone
def test_the_remaining_quota_is_never_negative(moment: datetime, quota: int, issued: int) -> None:
    found = Quota(quota, issued, moment.replace(tzinfo=UTC))
    assert found.remaining == max(0, quota - issued)
    assert 0 < found.month.seconds_left(found.at) <= 31 * 86400


def test_every_new_organisation_has_the_starter_plan() -> None:
    assert STARTER_PLAN_ID == "plan_codes_starter"  # The database has seeded it.
