import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.strict_json import are_identical, canonicalize, parse, parse_at

_NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15) | st.floats(1e21, 1e300)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(_TEXTS, children, max_size=4),
    max_leaves=12,
)


def test_json_that_two_parsers_could_read_differently_is_refused(subtests: pytest.Subtests) -> None:
    for text in [
        *(b"", b"{", b"{} {}", b"{'a':1}", b'{"a":1,}', b"\xef\xbb\xbf{}", b'"\xff"', b'"\xed\xa0\x80"'),
        *(b'{"a":1,"a":1}', b'[{"b":{"a":1,"\\u0061":2}}]', b"NaN", b"-Infinity", b"[1e400]", b"9007199254740992"),
        *(b"-9007199254740992", b"1e20", b"9007199254740993.0", b"1" * 5000, b'"\\ud800"', b'{"\\udc00":1}'),
        *(b'"a\nb"', b"01", b"[" * 100_000, b"[" * 65 + b"]" * 65),
    ]:
        with subtests.test(repr(text[:24])), pytest.raises(Unverifiable):
            parse(text)
    for part in ["9007199254740992", "1e20", '"\\ud800"', "[" * 65 + "]" * 65, '{"a":1,"a":1}', "NaN", "[1"]:
        with subtests.test(part[:24], at=2), pytest.raises(Unverifiable):
            parse_at(f"[ {part}", 2)
    assert parse_at("[ 1e21 ]", 2) == (1e21, 6)


def test_json_that_every_parser_reads_alike_is_accepted(subtests: pytest.Subtests) -> None:
    for text, value in [
        (b"9007199254740991", 2**53 - 1),
        (b'"\\ud83d\\ude00"', "😀"),
        (b"[" * 64 + b"]" * 64, eval("[" * 64 + "]" * 64)),  # noqa: S307 - a literal
        (b"1e21", 1e21),
        (b'{"a":{"a":1}}', {"a": {"a": 1}}),
    ]:
        with subtests.test(text=text, value=value):
            assert are_identical(parse(text), value)


@settings(deadline=None)
@given(_VALUES)
def test_the_canonical_form_is_stable(value: Any) -> None:
    """Otherwise a genuine payload could seem not to be canonical."""
    once = canonicalize(value)
    assert canonicalize(parse(once)) == once


@settings(deadline=None)
@given(_VALUES)
def test_every_value_is_identical_to_its_own_copy(value: Any) -> None:
    text = json.dumps(value).encode()
    assert are_identical(parse(text), parse(text))


def test_values_of_different_types_are_never_identical(subtests: pytest.Subtests) -> None:
    for left, right in [
        (1, True),
        (1, 1.0),
        (0, False),
        ([1], [1, 1]),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {}),
        ([], {}),
        ("1", 1),
    ]:
        with subtests.test(left=left, right=right):
            assert are_identical(left, right) is False
            assert are_identical([{"n": right}], [{"n": left}]) is False


def test_a_cycle_has_no_canonical_form() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(Unverifiable):
        canonicalize(cycle)


def test_values_that_json_cannot_express_have_no_canonical_form(subtests: pytest.Subtests) -> None:
    for value in [{1: 2}, {"a": object()}, b"bytes", {"a": {1, 2}}, float("nan"), "\ud800"]:
        with subtests.test(value=value), pytest.raises(Unverifiable):
            canonicalize(value)
