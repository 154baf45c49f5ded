"""Canonical JSON (RFC 8785): each value has one spelling, and values without one are refused."""

import json
from typing import Any, Final

import rfc8785

from soundmark.kit.http.requests.strict_json import is_exact_number

DEPTH_MAX: Final = 32
SIZE_MAX_BYTES: Final = 16 * 1024
# Without floats and with ASCII names, the canonical form is what this writes, in a twentieth of rfc8785's time: strings
# have the same escapes, and the order of characters is that of UTF-16.
_write_plain: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
).encode


class NotCanonical(ValueError):
    """The value has no canonical form, or its form exceeds the limits."""


def canonicalize(value: Any, *, depth_max: int = DEPTH_MAX, size_max_bytes: int = SIZE_MAX_BYTES) -> bytes:
    """Return the RFC 8785 bytes of `value`, whose outermost object is level 1.

    Raises: NotCanonical for cycles, non-finite numbers, integers beyond ±(2^53-1) (including floats that would be
        written like such integers), lone surrogates, member names that are not strings, values that JSON does not have,
        more than `depth_max` levels, and more than `size_max_bytes` bytes.
    Source: RFC 8785; API v1, "Issuance ordering"; contract, section 3, Intent.
    """
    check = _Check(size_max_bytes)
    check.value(value, depth_max)
    try:
        data = _write_plain(value).encode() if check.is_plain else rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise NotCanonical("cannot be written as canonical JSON") from error
    if len(data) > size_max_bytes:
        raise NotCanonical(f"is larger than {size_max_bytes} bytes in canonical form")
    return data


class _Check:
    """A check for values that rfc8785 would accept wrongly, misread or never finish.

    A cycle exceeds the limit on levels. A list that holds another one twice, and so on, has exponentially many values;
    each costs at least a byte, so it exceeds the limit on size. A value `is_plain` if it has neither floats nor member
    names with other characters than those of ASCII.
    """

    def __init__(self, size_max_bytes: int) -> None:
        self._size_max_bytes: Final = size_max_bytes
        self._bytes_left = size_max_bytes
        self.is_plain = True

    def value(self, value: Any, levels_left: int) -> None:
        match value:
            case None | bool():
                self._spend(4)
            case str():
                self._spend(len(value) + 2)
            case int() | float():
                self._spend(1)
                self.is_plain &= not isinstance(value, float)
                if not is_exact_number(value):
                    raise NotCanonical("contains a number that a double cannot hold exactly")
            case dict():
                self._open(levels_left)
                for name, member in value.items():
                    if not isinstance(name, str):
                        raise NotCanonical("contains a member name that is not a string")
                    self._spend(len(name) + 3)
                    self.is_plain &= name.isascii()
                    self.value(member, levels_left - 1)
            case list() | tuple():
                self._open(levels_left)
                for item in value:
                    self.value(item, levels_left - 1)
            case _:
                raise NotCanonical("contains a value that JSON cannot represent")

    def _open(self, levels_left: int) -> None:
        if levels_left == 0:
            raise NotCanonical("is nested too deeply, or contains itself")
        self._spend(2)

    def _spend(self, at_least_bytes: int) -> None:
        self._bytes_left -= at_least_bytes
        if self._bytes_left < 0:
            raise NotCanonical(f"is larger than {self._size_max_bytes} bytes in canonical form")
