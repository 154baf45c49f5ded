"""PostgreSQL's array literals, for statements on many rows, since the driver takes ten times as long to adapt a list.

The statement casts such a parameter, as in `unnest(%(ids)s::text[])`.
Source: PostgreSQL, "Array Input and Output Syntax".
"""

from collections.abc import Iterable
from datetime import datetime


def plain_array(values: Iterable[object]) -> str:
    """Return an array of values that need no quotes, such as numbers, days, ids and hex digits; None becomes NULL."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def text_array(values: Iterable[str | None]) -> str:
    """Return a `text[]`; None becomes NULL."""
    return "{" + ",".join(["NULL" if value is None else _quote(value) for value in values]) + "}"


def bytes_array(values: Iterable[bytes | None]) -> str:
    """Return a `bytea[]`; None becomes NULL."""
    return "{" + ",".join(["NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values]) + "}"


def time_array(values: Iterable[datetime]) -> str:
    """Return a `timestamptz[]` of aware times, to the microsecond."""
    return "{" + ",".join([value.isoformat() for value in values]) + "}"


def _quote(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
