from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk.http_exchange import check_base_url, parse_retry_after

from .issuer import NOW


def test_https_and_loopback_addresses_are_accepted(subtests: pytest.Subtests) -> None:
    for base_url, kept in [
        ("https://api.example.org", "https://api.example.org"),
        ("https://api.example.org:8443/soundmark/", "https://api.example.org:8443/soundmark"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.8.8.8", "http://127.8.8.8"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://localhost:8080", "http://localhost:8080"),
    ]:
        with subtests.test(base_url=base_url, kept=kept):
            assert check_base_url(base_url) == kept


def test_other_addresses_are_refused(subtests: pytest.Subtests) -> None:
    for base_url in [
        *("", "api.example.org", "ftp://api.example.org", "file:///etc/passwd", "https://"),
        *("https://user:password@api.example.org", "https://api.example.org?", "https://api.example.org/?a=b"),
        *("https://api.example.org#part", "http://api.example.org", "http://localhost.example.org"),
        *("http://127.0.0.1.example.org", "http://192.168.1.5", "http://0.0.0.0"),
        *("https://[::1", "https://api.example.org:port", "https://api.example.org:0", "https://api.example.org:65536"),
    ]:
        with subtests.test(base_url=base_url), pytest.raises(ValueError, match="base URL"):
            check_base_url(base_url)


def test_plain_http_to_other_machines_must_be_allowed() -> None:
    assert check_base_url("http://192.168.1.5:8080", allow_insecure_http=True) == "http://192.168.1.5:8080"


def test_retry_after_is_seconds_or_a_date(subtests: pytest.Subtests) -> None:
    for value, seconds in [
        ("0", 0),
        ("17", 17),
        ("Fri, 20 Nov 2026 10:00:40 GMT", 9.5),
        ("Friday, 20-Nov-26 10:00:40 GMT", 9.5),
        ("Fri, 20 Nov 2020 10:00:40 GMT", 0),
        ("Fri, 20 Nov 2026 10:00:40", None),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 400, None),
        ("soon", None),
        ("", None),
        (None, None),
    ]:
        with subtests.test(value=value, seconds=seconds):
            assert parse_retry_after(value, NOW) == seconds


@settings(deadline=None)
@given(st.text())
def test_every_retry_after_is_harmless(value: str) -> None:
    seconds = parse_retry_after(value, NOW)
    assert seconds is None or 0 <= seconds <= timedelta.max.total_seconds()
