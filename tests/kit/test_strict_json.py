"""Reading JSON as I-JSON (RFC 7493)."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.kit.strict_json import MalformedJson, Unrepresentable, is_exact_number, parse_json

INTEGER_MAX = 2**53 - 1
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


@given(values, st.booleans())
def test_what_json_says_is_read(value: Any, ascii_only: bool) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    try:
        value = parse_json(data)
    except MalformedJson:
        return
    assert value is None or isinstance(value, bool | int | float | str | list | dict | Unrepresentable)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" \n",
        b"\xef\xbb\xbf{}",
        b"{",
        b"{}x",
        b"{} {}",
        b"{'a':1}",
        b'{"a":1,}',
        b"[1,]",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b'"\n"',
        b'"\\x41"',
        b"undefined",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'{"a":NaN}',
        b"[1e400, NaN]",
        b"// comment\n{}",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\xaf"',
        b'"\xf4\x90\x80\x80"',
        "{}".encode("utf-16"),
    ],
)
def test_broken_text_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        parse_json(text)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":1}',
        b'{"b":[{"a":1,"c":2,"a":null}]}',
        b'{"a":1,"\\u0061":2}',
        b'{"\\u00e4":1,"\xc3\xa4":2}',
        b'{"":1,"":2}',
        b'{"\\ud83d\\ude00":1,"\xf0\x9f\x98\x80":2}',
        b'{"x":{"y":{"z":{"a":1,"a":2}}}}',
    ],
)
def test_a_member_name_that_occurs_twice_is_malformed(text: bytes) -> None:
    """Two parsers keep different ones; also where an escape hides that the names are one."""
    with pytest.raises(MalformedJson):
        parse_json(text)


def test_one_name_may_occur_in_several_objects() -> None:
    assert parse_json(b'[{"a":1},{"a":{"a":2}}]') == [{"a": 1}, {"a": {"a": 2}}]


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'"\\uDFFF"', b'"\\ude00\\ud83d"', b'{"\\ud800":1}', b'[[["a\\udbff"]]]']
)
def test_a_lone_surrogate_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        parse_json(text)


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert parse_json(b'{"\\ud83d\\ude00":"\\uD83D\\uDE00"}') == {"😀": "😀"}


def test_an_escaped_backslash_before_u_is_no_surrogate() -> None:
    assert parse_json(b'"\\\\ud800"') == "\\ud800"


@pytest.mark.parametrize(
    "number",
    ["9007199254740992", "-9007199254740992", "1e400", "-1e400", "1e17", "9007199254740993.0", "1" + "0" * 400],
)
def test_a_number_that_a_double_cannot_hold_stands_out_at_its_place(number: str) -> None:
    value = parse_json(b'{"a":[0,%s],"b":1}' % number.encode())
    assert isinstance(value["a"][1], Unrepresentable)
    assert (value["a"][0], value["b"]) == (0, 1)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"9007199254740991", INTEGER_MAX),
        (b"-9007199254740991", -INTEGER_MAX),
        (b"1e21", 1e21),
        (b"1.0", 1.0),
        (b"-0", 0),
        (b"1e-400", 0.0),
        (b"0.1", 0.1),
        (b"1E+2", 100.0),
    ],
)
def test_a_number_that_a_double_holds_is_read(text: bytes, number: float) -> None:
    assert parse_json(text) == number


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 2**53, 2.0**53, 1e20])
def test_these_numbers_are_not_exact(number: float) -> None:
    assert not is_exact_number(number)


@pytest.mark.parametrize(
    "number", [0, -0.0, 0.1, INTEGER_MAX, float(INTEGER_MAX), 1e21, 1.7976931348623157e308, 5e-324]
)
def test_these_numbers_are_exact(number: float) -> None:
    assert is_exact_number(number)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_a_hundred_thousand_levels_stand_out_at_their_place(opening: bytes, closing: bytes) -> None:
    deep = opening * 100_000 + b"1" + closing * 100_000
    value = parse_json(b'{"before":1,"deep":%s,"after":[2]}' % deep)
    assert (value["before"], value["after"]) == (1, [2])
    inner = value["deep"]
    while isinstance(inner, list | dict):
        (inner,) = inner.values() if isinstance(inner, dict) else inner
    assert isinstance(inner, Unrepresentable)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 99_999,
        b"[" * 100_000 + b"]" * 100_001,
        b"[" * 100_000 + b"]" * 100_000 + b"x",
        b"[" * 100_000 + b'"' + b"]" * 100_000,
        b"[" * 100_000 + b'"]' + b"\\",
    ],
    ids=["arrays", "objects", "one left open", "one too many", "more behind", "open string", "open escape"],
)
def test_deep_and_unbalanced_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        parse_json(text)


def test_a_bracket_in_a_deep_string_opens_nothing() -> None:
    """Also behind an escaped quote, and behind an escaped backslash that ends the string."""
    strings = rb'"]]]}}}[[[{{{", "\"]\"[", "\\", "a\\\"]"'
    value = parse_json(b'{"deep":' + b"[" * 2000 + strings + b"]" * 2000 + b',"after":1}')
    assert value["after"] == 1


def test_a_string_at_the_surface_of_a_deep_text_is_kept() -> None:
    value = parse_json(rb'{"text":"]\"[","deep":' + b"[" * 2000 + b"]" * 2000 + b"}")
    assert value["text"] == ']"['


def test_a_lone_surrogate_beside_a_deep_part_is_malformed() -> None:
    with pytest.raises(MalformedJson):
        parse_json(b'["\\ud800",' + b"[" * 2000 + b"]" * 2000 + b"]")


@pytest.mark.parametrize("depth", [250, 300, 500, 900, 950, 980, 990, 1000, 1100])
def test_no_depth_exhausts_the_stack(depth: int) -> None:
    """Whatever the parser manages, the check for surrogates behind it manages too."""
    value = parse_json(b"[" * depth + b'"\\ud83d\\ude00"' + b"]" * depth)
    assert isinstance(value, list)


# The limits below are for a slow machine under load; what they exclude are minutes.


@pytest.mark.parametrize(
    "text",
    [
        b"1" * 1_000_000,
        b"0." + b"1" * 1_000_000,
        b"1e" + b"9" * 1_000_000,
        b"[" * 2000 + b'"' + b'\\"' * 500_000,
        b"[" * 2000 + b'"\\' * 300_000,
        b"[" * 2000 + b'"",' * 300_000,
        b"[" * 1_000_000,
        b"[]," * 300_000,
        b'"' + b"\\ud83d\\ude00" * 80_000 + b'"',
    ],
    ids=["integer", "fraction", "exponent", "quotes", "odd quotes", "strings", "brackets", "pairs", "surrogates"],
)
def test_a_mebibyte_is_judged_quickly(text: bytes) -> None:
    started_s = time.process_time()
    with contextlib.suppress(MalformedJson):
        parse_json(text)
    assert time.process_time() - started_s < 5
