"""The only way in which the wire writes a time: RFC 3339, UTC, milliseconds, `Z`."""

import re
from datetime import UTC, datetime
from typing import Final

from soundmark_sdk.failures import Unverifiable

_PATTERN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


def parse(text: object) -> datetime:
    """Return the time, in UTC, that a wire timestamp names.

    Raises: Unverifiable for any other spelling and for a date that does not exist.
    Source: wire contract, section 1, "Conventions".
    """
    if not isinstance(text, str) or _PATTERN.fullmatch(text) is None:
        raise Unverifiable("A timestamp is malformed.")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Unverifiable("A timestamp names a date that does not exist.") from None


def write(time: datetime) -> str:
    """Return the wire timestamp of a time; the inverse of `parse`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
