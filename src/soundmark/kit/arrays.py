"""The texts of PostgreSQL's arrays: what writes many rows at once spends a tenth of the driver's time on its lists.

A parameter that is such a text is cast in its statement, as in `unnest(%(ids)s::text[])`.
Source: PostgreSQL, "Array Input and Output Syntax".
"""

from collections.abc import Iterable
from datetime import datetime


def text_array(values: Iterable[str | None]) -> str:
    """The text of a `text[]`; None is NULL."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def bytes_array(values: Iterable[bytes]) -> str:
    """The text of a `bytea[]`."""
    return "{" + ",".join([f'"\\\\x{value.hex()}"' for value in values]) + "}"


def time_array(values: Iterable[datetime]) -> str:
    """The text of a `timestamptz[]` of aware times, to the microsecond."""
    return "{" + ",".join([value.isoformat() for value in values]) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
