"""Calendar months in UTC."""

from datetime import UTC, datetime

import pytest

from soundmark.kit.text.months import month_of


def test_months_are_those_of_utc(subtests: pytest.Subtests) -> None:
    for moment, name, seconds in [
        ("2026-11-21T18:00:00+00:00", "2026-11", 9 * 86400 + 6 * 3600),
        ("2024-02-29T23:59:59.001+00:00", "2024-02", 1),
        ("2026-12-31T23:59:59.999999+00:00", "2026-12", 1),
        ("2026-12-01T00:00:00+00:00", "2026-12", 31 * 86400),
        ("2026-12-01T00:30:00+01:00", "2026-11", 1800),
    ]:
        with subtests.test(moment=moment, name=name, seconds=seconds):
            now = datetime.fromisoformat(moment).astimezone(UTC)
            assert (month_of(now).name, month_of(now).seconds_left(now)) == (name, seconds)


def test_a_month_ends_when_the_next_begins() -> None:
    now = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)
    assert month_of(now).ends_at == datetime(2027, 1, 1, tzinfo=UTC)
    assert month_of(month_of(now).ends_at).name == "2027-01"
