"""Read I-JSON and write canonical JSON; refuse everything that two implementations could read differently."""

import json
import math
from typing import Any, Final, TypeAlias

import rfc8785

from soundmark_sdk.failures import Unverifiable

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

# The intent may be 32 levels deep (wire contract, section 3); an answer wraps it in one level.
DEPTH_MAX: Final = 64

# Doubles hold every integer up to here exactly (RFC 7493, section 2.2).
INTEGER_MAX: Final = 2**53 - 1
# RFC 8785, section 3.2.2.3, by way of ECMAScript's number to string.
_EXPONENT_FROM: Final = 1e21


def parse(text: bytes) -> JsonValue:
    """Return the one value that these bytes encode.

    An integer becomes an `int`; a number with a fraction or an exponent becomes a `float`, so that a later comparison
    can tell `1` from `1.0`.

    Raises: Unverifiable for broken syntax, invalid UTF-8, a byte order mark, a repeated member name at any depth,
        `NaN` and `Infinity`, a lone surrogate, a number that a double cannot hold, and more than `DEPTH_MAX` levels.
    Source: RFC 7493; RFC 8259.
    """
    try:
        value: JsonValue = json.loads(
            text.decode("utf-8"), object_pairs_hook=_refuse_repeated_names, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        raise Unverifiable("The JSON is not I-JSON.") from None
    check_value(value)
    return value


def parse_at(text: str, start: int) -> tuple[JsonValue, int]:
    """Return the value that begins at a position of a text, and the position after it.

    Raises: Unverifiable for everything that `parse` refuses, and for a value that the text does not complete.
    Source: RFC 7493; RFC 8259.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        raise Unverifiable("The JSON is not I-JSON.") from None
    check_value(value)
    return value, end


def canonicalize(value: Any, *, depth_max: int = DEPTH_MAX) -> bytes:
    """Return the RFC 8785 form of a value that came from `parse` or from a Python caller.

    Raises: Unverifiable for everything that JSON cannot say: cycles, numbers that a double cannot hold, other types.
    Source: RFC 8785.
    """
    check_value(value, depth_max=depth_max)
    return rfc8785.dumps(value)


def check_value(value: Any, *, depth_max: int = DEPTH_MAX) -> None:
    """Accept only plain JSON values, at most `depth_max` containers deep; a cycle is deeper than any limit.

    Raises: Unverifiable.
    """
    match value:
        case None | bool():
            return
        case str():
            _check_text(value)
        case int():
            if abs(value) > INTEGER_MAX:
                raise Unverifiable("A double cannot hold a number in the JSON exactly.")
        case float():
            # From 1e21 on, the canonical form has an exponent. Below, it is an integer with the same limit.
            if not math.isfinite(value) or INTEGER_MAX < abs(value) < _EXPONENT_FROM:
                raise Unverifiable("A double cannot hold a number in the JSON exactly.")
        case list() | dict():
            if depth_max < 1:
                raise Unverifiable("The JSON is nested too deeply.")
            _check_children(value, depth_max - 1)
        case _:
            raise Unverifiable("The value is not JSON.")


def are_identical(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two values are equal with the same types throughout: `1` is neither `1.0` nor `true`."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(are_identical(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(are_identical, left, right))
    return left == right


def _check_children(value: list[Any] | dict[Any, Any], depth_max: int) -> None:
    if isinstance(value, list):
        for child in value:
            check_value(child, depth_max=depth_max)
        return
    for name, child in value.items():
        if not isinstance(name, str):
            raise Unverifiable("A member name is not a string.")
        _check_text(name)
        check_value(child, depth_max=depth_max)


def _check_text(text: str) -> None:
    # A Python string can hold a lone surrogate (`"\ud800"` in JSON); UTF-8 cannot, so it has no canonical bytes.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Unverifiable("A string in the JSON holds a lone surrogate.") from None


def _refuse_repeated_names(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("repeated member name")
    return members


def _refuse_constant(constant: str) -> None:
    raise ValueError(constant)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_refuse_repeated_names, parse_constant=_refuse_constant)
