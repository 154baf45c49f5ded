"""Compare JSON objects with closed shapes, and find the member that does not fit."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from soundmark_sdk import base64url, timestamps
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.strict_json import INTEGER_MAX, JsonValue

Check: TypeAlias = Callable[[Any], bool]
# The members of a closed object, each with a check or with the shape of the object in it.
Shape: TypeAlias = "Mapping[str, Check | Absentable | Shape]"


@dataclass(frozen=True, slots=True)
class Absentable:
    """A check for a member that may be absent."""

    check: Check


def find_misfit(value: JsonValue, shape: Shape, where: str) -> str | None:
    """Return the place of the first member that does not fit, such as `codes[17].issuer`, or None if all fit.

    A missing member has the place that it should have. The place of an unknown member is that of its object, because
    its name may be any text.
    """
    if not isinstance(value, dict):
        return where
    for name, expected in shape.items():
        place = f"{where}.{name}" if where else name
        if isinstance(expected, Absentable):
            if name not in value:
                continue
            expected = expected.check  # noqa: PLW2901 - from here on, it is as any other member
        if name not in value:
            return place
        if callable(expected):
            if not expected(value[name]):
                return place
        elif (misfit := find_misfit(value[name], expected, place)) is not None:
            return misfit
    return None if value.keys() <= shape.keys() else where


def matching(pattern: re.Pattern[str]) -> Check:
    """Return the check for a string that matches a pattern from end to end."""
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def one_of(*allowed: str) -> Check:
    """Return the check for one of some strings."""
    return lambda value: isinstance(value, str) and value in allowed


def optional(check: Check) -> Check:
    """Return the check for null, or for what another check accepts."""
    return lambda value: value is None or check(value)


def encoding(size: int) -> Check:
    """Return the check for the canonical base64url text of `size` bytes."""

    def is_encoded(value: Any) -> bool:
        try:
            return isinstance(value, str) and len(base64url.decode(value)) == size
        except Unverifiable:
            return False

    return is_encoded


def list_of(shape: Shape, size_min: int, size_max: int) -> Check:
    """Return the check for a list of objects of one shape."""
    return lambda value: (
        isinstance(value, list)
        and size_min <= len(value) <= size_max
        and all(find_misfit(each, shape, "") is None for each in value)
    )


def is_integer_between(least: int, greatest: int) -> Check:
    """Return the check for an integer in a range; `true` and `1.0` are none."""
    return lambda value: type(value) is int and least <= value <= greatest


def is_number_between(least: int, greatest: int) -> Check:
    """Return the check for a number in a range; `true` is none."""
    return lambda value: type(value) in {int, float} and least <= value <= greatest


def is_text(value: Any) -> bool:
    """Return whether a value is a string."""
    return isinstance(value, str)


def is_boolean(value: Any) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def is_object(value: Any) -> bool:
    """Return whether a value is an object, with any members."""
    return isinstance(value, dict)


def is_count(value: Any) -> bool:
    """Return whether a value is an integer from 0 on; `true` and `1.0` are none."""
    return type(value) is int and 0 <= value <= INTEGER_MAX


def is_version_1(value: Any) -> bool:
    """Return whether a value is the integer 1."""
    return type(value) is int and value == 1


def is_timestamp(value: Any) -> bool:
    """Return whether a value is a time as the wire writes it."""
    try:
        timestamps.parse(value)
    except Unverifiable:
        return False
    return True
