"""RFC 8785, and values without a canonical form."""

import json
from collections import UserDict
from decimal import Decimal
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from soundmark.kit.crypto.canonical import DEPTH_MAX, SIZE_MAX_BYTES, NotCanonical, canonicalize
from soundmark.kit.http.requests.strict_json import Unrepresentable

INTEGER_MAX = 2**53 - 1

exact_integers = st.integers(-INTEGER_MAX, INTEGER_MAX)
exact_floats = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: abs(number) <= INTEGER_MAX or abs(number) >= 1e21
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | exact_integers | exact_floats | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


def nested(levels: int) -> Any:
    """Return nested objects, `levels` deep."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_the_numbers_of_the_rfc_are_written_as_the_rfc_writes_them() -> None:
    """RFC 8785, section 3.2.2."""
    numbers = [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001]
    assert canonicalize(numbers) == b"[333333333.3333333,1e+30,4.5,0.002,1e-27]"


def test_the_sample_of_the_rfc_is_written_as_the_rfc_writes_it() -> None:
    """RFC 8785, section 3.2.3: members are sorted, strings keep every character that needs no escape."""
    sample = {"numbers": [1], "string": '€$\u000f\nA\'B"\\\\"/', "literals": [None, True, False]}
    assert canonicalize(sample) == (
        b'{"literals":[null,true,false],"numbers":[1],"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_members_are_sorted_by_utf_16_units() -> None:
    """RFC 8785, section 3.2.3: an astral character begins with a surrogate, which sorts before U+FB33."""
    names = ["€", "\r", "\ufb33", "1", "😀", "\x80", "ö"]
    written = canonicalize(dict.fromkeys(names, 0)).decode()
    assert list(json.loads(written)) == ["\r", "1", "\x80", "ö", "€", "😀", "\ufb33"]


def test_one_number_has_one_spelling(subtests: pytest.Subtests) -> None:
    for value, written in [
        (1.0, b"1"),
        (-0.0, b"0"),
        (0, b"0"),
        (1e21, b"1e+21"),
        (INTEGER_MAX, b"9007199254740991"),
        (True, b"true"),
    ]:
        with subtests.test(value=value, written=written):
            assert canonicalize(value) == written


@given(values)
def test_canonicalising_again_changes_nothing(value: Any) -> None:
    written = canonicalize(value)
    assert canonicalize(json.loads(written)) == written


plain_values = st.recursive(
    st.none() | st.booleans() | exact_integers | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


@given(plain_values | values)
def test_it_is_written_as_by_the_library_for_rfc_8785(value: Any) -> None:
    """Values without floats are mostly written by another encoder, which is faster."""
    assert canonicalize(value) == rfc8785.dumps(value)


def test_every_ascii_character_is_escaped_as_by_the_library_for_rfc_8785() -> None:
    value = {chr(number): chr(number) for number in range(128)}
    assert canonicalize(value) == rfc8785.dumps(value)


@given(st.dictionaries(texts, values, max_size=6), st.randoms())
def test_the_order_of_members_does_not_matter(members: dict[str, Any], order: Any) -> None:
    names = list(members)
    order.shuffle(names)
    assert canonicalize({name: members[name] for name in names}) == canonicalize(members)


def test_a_value_without_an_unambiguous_json_text_is_refused(subtests: pytest.Subtests) -> None:
    for value in [
        *(float("nan"), float("-inf"), INTEGER_MAX + 1, -INTEGER_MAX - 1, 10**400, float(2**53), -float(2**53), 1e17),
        *("\ud800", {"\udfff": 1}, {1: "a"}, {None: "a"}, {True: "a"}, b"bytes", bytearray(b"bytes"), {"a", "set"}),
        *(object(), Decimal(1), 1j, range(3), UserDict(a=1), Unrepresentable()),
    ]:
        for around in (value, {"a": [value]}):
            with subtests.test(around=around), pytest.raises(NotCanonical):
                canonicalize(around)


def test_a_cycle_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["circle"] = [circle]
    with pytest.raises(NotCanonical):
        canonicalize(circle)


def test_a_value_that_repeats_its_parts_without_end_is_refused_at_once() -> None:
    """Thirty small lists, each twice in the next, are a thousand million values when walked."""
    value: list[Any] = [1]
    for _ in range(30):
        value = [value, value]
    with pytest.raises(NotCanonical):
        canonicalize(value)


def test_32_levels_are_allowed_and_33_are_not() -> None:
    assert canonicalize(nested(DEPTH_MAX)) == b'{"a":' * 31 + b"{}" + b"}" * 31
    with pytest.raises(NotCanonical):
        canonicalize(nested(DEPTH_MAX + 1))


def test_an_array_is_a_level_like_an_object() -> None:
    value: list[Any] = []
    for _ in range(DEPTH_MAX - 1):
        value = [value]
    assert canonicalize(value) == b"[" * 32 + b"]" * 32
    with pytest.raises(NotCanonical):
        canonicalize([value])


def test_16_kib_are_allowed_and_one_byte_more_is_not() -> None:
    """The limit counts bytes, not characters."""
    assert len(canonicalize("ä" * (SIZE_MAX_BYTES // 2 - 1))) == SIZE_MAX_BYTES
    with pytest.raises(NotCanonical):
        canonicalize("ä" * (SIZE_MAX_BYTES // 2 - 1) + "a")
    assert len(canonicalize("a" * (SIZE_MAX_BYTES - 2))) == SIZE_MAX_BYTES
    with pytest.raises(NotCanonical):
        canonicalize("a" * (SIZE_MAX_BYTES - 1))


def test_the_largest_number_of_values_within_the_size_is_allowed() -> None:
    """Half of the bytes are commas; a limit on the number of values must not refuse what the size limit allows."""
    assert len(canonicalize([1] * (SIZE_MAX_BYTES // 2 - 1))) == SIZE_MAX_BYTES - 1


def test_the_limits_are_configurable() -> None:
    assert canonicalize(nested(33), depth_max=33)
    with pytest.raises(NotCanonical):
        canonicalize("aaa", size_max_bytes=4)


def test_a_refusal_does_not_repeat_the_value() -> None:
    with pytest.raises(NotCanonical) as refusal:
        canonicalize({"confidential": 2**60})
    assert "confidential" not in str(refusal.value)
    assert str(2**60) not in str(refusal.value)
