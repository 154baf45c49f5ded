from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk import base64url, timestamps
from soundmark_sdk.failures import Unverifiable


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_base64url_decodes_to_the_original_bytes(data: bytes) -> None:
    assert base64url.decode(base64url.encode(data)) == data


def test_base64url_may_end_with_each_of_its_characters() -> None:
    for last in range(64):
        data = bytes([0, 0, last])
        assert base64url.decode(base64url.encode(data)) == data


def test_any_other_spelling_of_base64url_is_refused(subtests: pytest.Subtests) -> None:
    """`AB` and `AA` decode to the same byte; if both were accepted, a flipped bit would go unnoticed."""
    for text in ["A", "AB==", "AB", "AAB", "+A", "/A", "A A", "AA\n", "é", "AA=", "_-A*"]:
        with subtests.test(text=text), pytest.raises(Unverifiable):
            base64url.decode(text)


@settings(deadline=None)
@given(st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)))  # noqa: DTZ001 - given its zone below
def test_timestamps_parse_to_the_original_time(at: datetime) -> None:
    at = at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=UTC)
    assert timestamps.parse(timestamps.write(at)) == at


def test_any_other_spelling_of_a_timestamp_is_refused(subtests: pytest.Subtests) -> None:
    for text in [
        *("2026-11-20T10:00:00Z", "2026-11-20T10:00:00.0000Z", "2026-11-20T10:00:00.000+00:00"),
        *("2026-11-20t10:00:00.000z", "2026-11-20 10:00:00.000Z", "2026-02-30T10:00:00.000Z"),
        *("2026-11-20T24:00:00.000Z", "2026-12-31T23:59:60.000Z", "0000-01-01T00:00:00.000Z"),
        *("٢026-11-20T10:00:00.000Z", "2026-11-20T10:00:00.000Z\n", "", None, 1763632800),
    ]:
        with subtests.test(text=text), pytest.raises(Unverifiable):
            timestamps.parse(text)
