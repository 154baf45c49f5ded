"""Closed query strings: a parameter that is unknown, misspelt or given twice is refused, never ignored."""

from collections import Counter
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qsl

from soundmark.kit.http.responses.problems import FieldError

_PARAMETERS_MAX: Final = 64  # Far above what any route takes.
# The longest parameter is a cursor of 2,048 characters. 8 KiB of percent-encoding are decoded in half a millisecond.
_QUERY_BYTES_MAX: Final = 8 * 1024
_NAME_CHARS_MAX: Final = 160  # A response must not grow with the request.


def is_excessive(query_string: bytes) -> bool:
    """Return whether a query string is too long, or has too many parameters, to be worth decoding."""
    return len(query_string) > _QUERY_BYTES_MAX or query_string.count(b"&") >= _PARAMETERS_MAX


def query_faults(query_string: bytes, known: Collection[str]) -> tuple[FieldError, ...]:
    """Return a fault for each name in a query string that is not `known` or occurs more than once.

    Source: contract, section 1.
    """
    if not query_string:
        return ()
    if is_excessive(query_string):
        most = f"{_PARAMETERS_MAX} parameters and {_QUERY_BYTES_MAX:,} bytes"
        return (FieldError("query", "/", f"must have at most {most}"),)
    # Decoded like Starlette does, so that a name is the same here and in the routes.
    counts = Counter(name for name, _ in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))
    return tuple(
        FieldError("query", f"/{name[:_NAME_CHARS_MAX]}", message)
        for name, count in counts.items()
        if (message := _fault_of(count, is_known=name in known)) is not None
    )


def _fault_of(count: int, *, is_known: bool) -> str | None:
    if not is_known:
        return "is not a parameter of this operation"
    return "must be given once" if count > 1 else None
