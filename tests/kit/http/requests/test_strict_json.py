"""Reading JSON as I-JSON (RFC 7493)."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.kit.http.requests.bodies import LARGE_BODY
from soundmark.kit.http.requests.strict_json import (
    MalformedJson,
    Unrepresentable,
    count_structure,
    is_exact_number,
    parse_json,
)

INTEGER_MAX = 2**53 - 1
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


@given(values, st.booleans())
def test_valid_json_is_read(value: Any, ascii_only: bool) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    try:
        value = parse_json(data)
    except MalformedJson:
        return
    assert value is None or isinstance(value, bool | int | float | str | list | dict | Unrepresentable)


def test_broken_text_is_malformed(subtests: pytest.Subtests) -> None:
    for text in [
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
    ]:
        with subtests.test(text=text), pytest.raises(MalformedJson):
            parse_json(text)


def test_a_member_name_that_occurs_twice_is_malformed(subtests: pytest.Subtests) -> None:
    """Parsers keep different ones of the two, also where an escape hides that the names are equal."""
    for text in [
        *(b'{"a":1,"a":1}', b'{"b":[{"a":1,"c":2,"a":null}]}', b'{"a":1,"\\u0061":2}', b'{"\\u00e4":1,"\xc3\xa4":2}'),
        *(b'{"":1,"":2}', b'{"\\ud83d\\ude00":1,"\xf0\x9f\x98\x80":2}', b'{"x":{"y":{"z":{"a":1,"a":2}}}}'),
    ]:
        with subtests.test(text=text), pytest.raises(MalformedJson):
            parse_json(text)


def test_one_name_may_occur_in_several_objects() -> None:
    assert parse_json(b'[{"a":1},{"a":{"a":2}}]') == [{"a": 1}, {"a": {"a": 2}}]


def test_a_lone_surrogate_is_malformed(subtests: pytest.Subtests) -> None:
    for text in [b'"\\ud800"', b'"\\uDFFF"', b'"\\ude00\\ud83d"', b'{"\\ud800":1}', b'[[["a\\udbff"]]]']:
        with subtests.test(text=text), pytest.raises(MalformedJson):
            parse_json(text)


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert parse_json(b'{"\\ud83d\\ude00":"\\uD83D\\uDE00"}') == {"😀": "😀"}


def test_an_escaped_backslash_before_u_is_no_surrogate() -> None:
    assert parse_json(b'"\\\\ud800"') == "\\ud800"


def test_a_number_that_a_double_cannot_hold_is_marked_where_it_occurs(subtests: pytest.Subtests) -> None:
    for number in [
        "9007199254740992",
        "-9007199254740992",
        "1e400",
        "-1e400",
        "1e17",
        "9007199254740993.0",
        "1" + "0" * 400,
    ]:
        with subtests.test(number=number):
            value = parse_json(b'{"a":[0,%s],"b":1}' % number.encode())
            assert isinstance(value["a"][1], Unrepresentable)
            assert (value["a"][0], value["b"]) == (0, 1)


def test_a_number_that_a_double_holds_is_read(subtests: pytest.Subtests) -> None:
    for text, number in [
        (b"9007199254740991", INTEGER_MAX),
        (b"-9007199254740991", -INTEGER_MAX),
        (b"1e21", 1e21),
        (b"1.0", 1.0),
        (b"-0", 0),
        (b"1e-400", 0.0),
        (b"0.1", 0.1),
        (b"1E+2", 100.0),
    ]:
        with subtests.test(text=text, number=number):
            assert parse_json(text) == number


def test_a_whole_number_is_an_integer_however_it_is_written(subtests: pytest.Subtests) -> None:
    """RFC 8785 writes both alike, so they are the same request."""
    for text, number in [
        (b"7.0", 7),
        (b"70e-1", 7),
        (b"-7.000", -7),
        (b"1e3", 1000),
        (b"-0.0", 0),
        (b"9007199254740991.0", INTEGER_MAX),
    ]:
        with subtests.test(text=text, number=number):
            assert (type(parse_json(text)), parse_json(text)) == (int, number)


def test_nothing_else_is_an_integer(subtests: pytest.Subtests) -> None:
    for text, kind in [(b"7.5", float), (b"1e21", float), (b"true", bool), (b'"7"', str)]:
        with subtests.test(text=text, kind=kind):
            assert type(parse_json(text)) is kind


def test_these_numbers_are_not_exact(subtests: pytest.Subtests) -> None:
    for number in [float("nan"), float("inf"), 2**53, 2.0**53, 1e20]:
        with subtests.test(number=number):
            assert not is_exact_number(number)


def test_these_numbers_are_exact(subtests: pytest.Subtests) -> None:
    for number in [0, -0.0, 0.1, INTEGER_MAX, float(INTEGER_MAX), 1e21, 1.7976931348623157e308, 5e-324]:
        with subtests.test(number=number):
            assert is_exact_number(number)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_a_hundred_thousand_levels_are_marked_where_they_occur(opening: bytes, closing: bytes) -> None:
    deep = opening * 100_000 + b"1" + closing * 100_000
    value = parse_json(b'{"before":1,"deep":%s,"after":[2]}' % deep)
    assert (value["before"], value["after"]) == (1, [2])
    inner = value["deep"]
    while isinstance(inner, list | dict):
        (inner,) = inner.values() if isinstance(inner, dict) else inner
    assert isinstance(inner, Unrepresentable)


def test_deep_and_unbalanced_is_malformed(subtests: pytest.Subtests) -> None:
    for name, text in {
        "arrays": b"[" * 100_000,
        "objects": b'{"a":' * 100_000,
        "one left open": b"[" * 100_000 + b"]" * 99_999,
        "one too many": b"[" * 100_000 + b"]" * 100_001,
        "more behind": b"[" * 100_000 + b"]" * 100_000 + b"x",
        "open string": b"[" * 100_000 + b'"' + b"]" * 100_000,
        "open escape": b"[" * 100_000 + b'"]' + b"\\",
    }.items():
        with subtests.test(name), pytest.raises(MalformedJson):
            parse_json(text)


def test_a_bracket_in_a_deep_string_opens_nothing() -> None:
    """Also after an escaped quote, and after an escaped backslash that ends the string."""
    strings = rb'"]]]}}}[[[{{{", "\"]\"[", "\\", "a\\\"]"'
    value = parse_json(b'{"deep":' + b"[" * 2000 + strings + b"]" * 2000 + b',"after":1}')
    assert value["after"] == 1


def test_a_string_at_the_surface_of_a_deep_text_is_kept() -> None:
    value = parse_json(rb'{"text":"]\"[","deep":' + b"[" * 2000 + b"]" * 2000 + b"}")
    assert value["text"] == ']"['


def test_a_lone_surrogate_beside_a_deep_part_is_malformed() -> None:
    with pytest.raises(MalformedJson):
        parse_json(b'["\\ud800",' + b"[" * 2000 + b"]" * 2000 + b"]")


def test_no_depth_exhausts_the_stack(subtests: pytest.Subtests) -> None:
    """Whatever depth the parser accepts, the later check for surrogates accepts too."""
    for depth in [250, 300, 500, 900, 950, 980, 990, 1000, 1100]:
        with subtests.test(depth=depth):
            value = parse_json(b"[" * depth + b'"\\ud83d\\ude00"' + b"]" * depth)
            assert isinstance(value, list)


MEBIBYTE = 1024 * 1024
IDS = b'{"organization_id":"org_1","intent":'
# Texts that would cost a hundred times what a string of their size costs, if every value were built.
HOSTILE = {
    "pairs": b"[]," * 350_000,
    "a list of pairs": b"[" + b"[]," * 349_000 + b"[]]",
    "open brackets": b"[" * 1_000_000,
    "brackets": b"[" * 500_000 + b"]" * 500_000,
    "nested objects": b'{"a":' * 170_000 + b"1" + b"}" * 170_000,
    "members": b"{" + b",".join(b'"%d":1' % number for number in range(100_000)) + b"}",
    "integers": b"[" + b"1," * 500_000 + b"1]",
    "deep brackets in a body": IDS + b"[" * 480_000 + b"]" * 480_000 + b"}",
    "integers in a body": IDS + b"[" + b"1," * 480_000 + b"1]}",
    "long integer": b"1" * 1_000_000,
    "long fraction": b"0." + b"1" * 1_000_000,
    "long exponent": b"1e" + b"9" * 1_000_000,
    "quotes": b"[" * 2000 + b'"' + b'\\"' * 500_000,
    "odd quotes": b"[" * 2000 + b'"\\' * 300_000,
    "strings": b"[" * 2000 + b'"",' * 300_000,
    "surrogates": b'"' + b"\\ud83d\\ude00" * 80_000 + b'"',
}


def processor_s(data: bytes) -> float:
    """Return the least processor time of three readings, as for the body of an issuance."""
    spent_s = []
    for _ in range(3):
        started_s = time.thread_time()
        with contextlib.suppress(MalformedJson):
            parse_json(data, structure_max=LARGE_BODY.structure_max)
        spent_s.append(time.thread_time() - started_s)
    return min(spent_s)


@pytest.mark.parametrize("data", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_mebibyte_costs_about_what_a_valid_one_costs(data: bytes) -> None:
    """Built value by value, they cost 30 to 80 times as much; the factor leaves room for a busy machine."""
    valid = b'{"text":"' + b"\\u0061" * ((MEBIBYTE - 11) // 6) + b'"}'
    assert processor_s(data) < 15 * processor_s(valid)


def test_a_text_with_more_values_than_any_request_is_not_built(subtests: pytest.Subtests) -> None:
    for name in ["a list of pairs", "brackets", "nested objects", "integers", "integers in a body"]:
        with subtests.test(name=name):
            assert isinstance(parse_json(HOSTILE[name]), Unrepresentable)


def test_as_much_structure_as_is_allowed_is_read(subtests: pytest.Subtests) -> None:
    """Closing brackets do not count; brackets inside a string do, because strings have not been recognised yet."""
    for text in [b"[1,2]", b'{"a":1,"b":2}', b"[[[]]]", b'"[,{"']:
        with subtests.test(text=text):
            most = count_structure(text)
            assert parse_json(text, structure_max=most) == json.loads(text)
            assert isinstance(parse_json(text, structure_max=most - 1), Unrepresentable)


def test_the_syntax_of_values_that_are_not_built_is_checked_too(subtests: pytest.Subtests) -> None:
    for text in [
        *(b"[1,2", b"[1,2]]", b"[1,2,]", b"[1,02]", b"[1,NaN]", b'[1,"\\ud800"]', b"[" * 9_000),
        *(b"[" * 9_000 + b"]" * 9_001, b"[" * 9_000 + b"]" * 9_000 + b"x"),
        *(b"[" * 9_000 + b'"' + b"]" * 9_000, b"[" * 9_000 + b'"]' + b"\\"),
    ]:
        with subtests.test(repr(text[:12] + text[-4:])), pytest.raises(MalformedJson):
            parse_json(text, structure_max=0)


@given(st.text('[]{}",:\\\\0123456789eE+-. \\ntruefalsn\\ud', max_size=24))
def test_both_ways_of_checking_syntax_agree(text: str) -> None:
    """Except for duplicate names, which are found only where values are built."""

    def is_malformed(structure_max: int) -> bool:
        try:
            parse_json(text.encode(), structure_max=structure_max)
        except MalformedJson as error:
            return "occurs twice" not in str(error)
        return False

    assert is_malformed(-1) == is_malformed(1000)
