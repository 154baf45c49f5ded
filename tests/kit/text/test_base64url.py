"""Base64url, with one spelling for each value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.kit.text import base64url


@given(st.binary(max_size=100))
def test_an_encoded_value_is_decoded(data: bytes) -> None:
    text = base64url.encode(data)
    assert base64url.decode(text) == data
    assert "=" not in text


def test_the_alphabet_is_the_one_for_urls() -> None:
    assert base64url.encode(b"\xfb\xff") == "-_8"


def test_another_spelling_is_refused(subtests: pytest.Subtests) -> None:
    """`-_9` differs from `-_8` only in bits beyond the last byte."""
    for text in ["+/8", "-_8=", "-_8==", "-_9", "A", "AAAAA", "A A", "AA\n", " AA", "ä", "AA==AA", "\ud800"]:
        with subtests.test(text=text), pytest.raises(ValueError, match="not base64url"):
            base64url.decode(text)


@given(st.text(max_size=12))
def test_whatever_is_decoded_is_spelled_as_it_would_be_encoded(text: str) -> None:
    try:
        data = base64url.decode(text)
    except ValueError:
        return
    assert base64url.encode(data) == text
