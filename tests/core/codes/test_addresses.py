"""Addresses as they are stored: their bytes begin with those of a prefix exactly if the contract says so."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.codes.addresses import HOSTILE_URLS, begins_with

from soundmark.core.domain.codes.address import ADDRESS_CHARS_MAX, address_of, bounds_of

# Mostly what the comparison depends on, so that the parts of an address meet each other.
TEXTS = st.text(
    st.sampled_from("aAzZ:/?#%_\\é\0\uffff\U0010ffff") | st.characters(exclude_categories=["Cs"]), max_size=12
)
URLS = st.one_of(
    TEXTS,
    st.builds("{}://{}/{}".format, TEXTS, TEXTS, TEXTS),
    st.builds(lambda text, pad: "x" * pad + text, TEXTS, st.integers(190, 400)),
    st.sampled_from([url for url in HOSTILE_URLS if isinstance(url, str)]),
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """An address, and a prefix that is near it: cut from it, with some letters in the other case, or from another."""
    url = draw(URLS)
    source = draw(st.sampled_from([url, url.swapcase(), url.upper(), url.lower(), draw(URLS)]))
    cut = source[: draw(st.integers(1, ADDRESS_CHARS_MAX))]
    return url, cut if 0 < len(cut) <= ADDRESS_CHARS_MAX else "x"


def found(url: Any, prefix: str) -> bool:
    least, before = bounds_of(prefix)
    return least <= address_of({"url": url}) < before


@given(pairs())
@example(("HTTPS://A/b", "https:"))
@example(("https://a/c", "https://a/b"))
@example(("x" * 199 + "://Y/Z", "X" * 200))
def test_a_range_of_bytes_is_what_begins_with_the_prefix(pair: tuple[str, str]) -> None:
    url, prefix = pair
    assert found(url, prefix) == begins_with(url, prefix)


@pytest.mark.parametrize(
    ("url", "prefix", "is_found"),
    [
        ("https://example.org/Tonight", "HTTPS://EXAMPLE.ORG/Ton", True),
        ("https://example.org/Tonight", "https://example.org/ton", False),
        ("://Example.org/Tonight", "://EXAMPLE.org/Ton", True),
        ("://example.org/Tonight", "://example.org/ton", False),
        ("HTTPS://EXAMPLE.ORG", "htt", True),
        ("https://bücher.example/", "https://xn--", False),
        ("https://example.org/", "%", False),
        (None, "n", False),
    ],
)
def test_what_counts_and_what_does_not(url: Any, prefix: str, is_found: bool) -> None:
    assert found(url, prefix) is is_found


@given(URLS)
def test_a_stored_address_is_short(url: str) -> None:
    assert len(address_of({"url": url}).decode()) == min(len(url), ADDRESS_CHARS_MAX)
