"""RFC 3339 timestamps."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def test_a_moment_is_written_in_utc_with_milliseconds() -> None:
    assert format_timestamp(NOON.astimezone(timezone(timedelta(hours=5)))) == "2026-11-20T12:00:00.000Z"


def test_a_moment_without_a_zone_is_not_written() -> None:
    with pytest.raises(AssertionError):
        format_timestamp(datetime(2026, 11, 20))  # noqa: DTZ001 - the mistake under test


def test_every_offset_names_the_same_moment(subtests: pytest.Subtests) -> None:
    for text in [
        *("2026-11-20T12:00:00Z", "2026-11-20t12:00:00z", "2026-11-20T12:00:00.0Z", "2026-11-20T12:00:00.000999999Z"),
        *("2026-11-20T13:00:00+01:00", "2026-11-20T06:30:00.000-05:30"),
        *("2026-11-21T11:59:00+23:59", "2026-11-20T12:00:00-00:00"),
    ]:
        with subtests.test(text=text):
            assert parse_timestamp(text) == NOON


def test_digits_below_a_millisecond_are_cut_off() -> None:
    assert parse_timestamp("2026-11-20T12:00:00.123999999Z") == NOON + timedelta(milliseconds=123)


def test_anything_else_is_refused(subtests: pytest.Subtests) -> None:
    for text in [
        *("", "2026-11-20", "2026-11-20T12:00:00", "2026-11-20T12:00Z", "2026-11-20 12:00:00Z", "20261120T120000Z"),
        *("2026-W47-5T12:00:00Z", "2026-11-20T12:00:00,5Z", "2026-11-20T12:00:00.Z"),
        *("2026-11-20T12:00:00.0000000000Z", "2026-11-20T12:00:00+01", "2026-11-20T12:00:00+0100"),
        *("2026-11-20T12:00:00+01:00:00", "2026-11-20T12:00:00+24:00", "2026-11-20T12:00:00+01:60"),
        *("2026-02-30T12:00:00Z", "2026-13-01T12:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T12:60:00Z"),
        *("2026-11-20T23:59:60Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"),
        *("10000-01-01T00:00:00Z", "２026-11-20T12:00:00Z", " 2026-11-20T12:00:00Z"),
        *("2026-11-20T12:00:00Z\n", "1795003200"),
    ]:
        with subtests.test(text=text), pytest.raises(ValueError, match="must be"):
            parse_timestamp(text)


moments = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001 - hypothesis adds the zone
    timezones=st.just(UTC),
).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))


@given(moments)
def test_a_written_timestamp_is_read_back(moment: datetime) -> None:
    assert parse_timestamp(format_timestamp(moment)) == moment


@given(moments, moments)
def test_texts_sort_like_the_moments(one: datetime, other: datetime) -> None:
    assert (one < other) == (format_timestamp(one) < format_timestamp(other))
