"""RFC 3339 timestamps: written in UTC with milliseconds and `Z`, read with any offset."""

import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

_RFC_3339: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:[0-5]\d)", re.ASCII)
_TWO_DIGITS: Final = tuple(f"{number:02}" for number in range(60))
_THREE_DIGITS: Final = tuple(f"{number:03}" for number in range(1000))


def format_timestamp(moment: datetime) -> str:
    """Return a text such as `2026-11-20T10:00:00.000Z`. These texts sort in the order of their times."""
    assert moment.tzinfo is not None, "a time without a zone is ambiguous"
    utc = moment.astimezone(UTC)
    # In a third of the time that `isoformat` or a `%` with numbers takes; a list of 50 Codes has 101 of them.
    time = f"{_TWO_DIGITS[utc.hour]}:{_TWO_DIGITS[utc.minute]}:{_TWO_DIGITS[utc.second]}"
    return f"{_format_day(utc.toordinal())}T{time}.{_THREE_DIGITS[utc.microsecond // 1000]}Z"


@lru_cache(maxsize=1024)
def _format_day(ordinal: int) -> str:
    return date.fromordinal(ordinal).isoformat()


def parse_timestamp(text: str) -> datetime:
    """Return the UTC time that `text` names, truncated to milliseconds.

    Raises: ValueError unless `text` is an RFC 3339 date-time with an offset, in the years 1 to 9999 of UTC.
    """
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise ValueError("must be an RFC 3339 date-time with an offset, such as 2026-11-20T10:00:00.000Z")
    day, time, fraction, offset = match.groups()
    milliseconds = (fraction or "").ljust(3, "0")[:3]
    try:
        return datetime.fromisoformat(f"{day}T{time}.{milliseconds}{offset.upper()}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be a date-time that exists, with an offset") from None
