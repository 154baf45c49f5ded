"""Canonical JSON (RFC 8785), guarded: one value has one spelling, and what has none is refused."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import rfc8785

from soundmark.kit.strict_json import is_exact_number

DEPTH_MAX: Final = 32
SIZE_MAX_BYTES: Final = 16 * 1024


class NotCanonical(ValueError):  # noqa: N818 - named for what was found, like every problem
    """The value has no canonical form, or one beyond the limits."""


def canonicalize(value: Any, *, depth_max: int = DEPTH_MAX, size_max_bytes: int = SIZE_MAX_BYTES) -> bytes:
    """The RFC 8785 bytes of `value`, whose outermost object is level 1.

    Raises: NotCanonical for cycles, non-finite numbers, integers beyond ±(2^53-1) (floats too that would be written
        as such), lone surrogates, member names that are no strings, values that JSON does not have, more than
        `depth_max` levels, and more than `size_max_bytes` bytes.
    Source: RFC 8785; API v1, "Issuance ordering"; contract, section 3, Intent.
    """
    _check(value, depth_max)
    try:
        data = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise NotCanonical("cannot be written as canonical JSON") from error
    if len(data) > size_max_bytes:
        raise NotCanonical(f"is {len(data)} bytes in canonical form; at most {size_max_bytes} are allowed")
    return data


def _check(value: Any, levels_left: int) -> None:
    """Refuse what rfc8785 would accept, misread or recurse into for ever; a cycle runs out of levels."""
    match value:
        case None | bool() | str():
            return
        case int() | float():
            if not is_exact_number(value):
                raise NotCanonical("holds a number that a double cannot hold exactly")
        case Mapping():
            _check_level(levels_left)
            for name, member in value.items():
                if not isinstance(name, str):
                    raise NotCanonical("holds a member name that is no string")
                _check(member, levels_left - 1)
        case bytes() | bytearray() | memoryview():
            raise NotCanonical("holds a value that JSON does not have")
        case Sequence():
            _check_level(levels_left)
            for item in value:
                _check(item, levels_left - 1)
        case _:
            raise NotCanonical("holds a value that JSON does not have")


def _check_level(levels_left: int) -> None:
    if levels_left == 0:
        raise NotCanonical("is nested too deeply, or contains itself")
