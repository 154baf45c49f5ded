"""Keyset pages of a list in SQL: the end of its statement, and the parameters of that."""

from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from soundmark.kit.text.paging import Position

# For a table with the columns created_at and id, behind a condition. Each page starts in the index where the previous
# page ended: the bound is not `IS NULL OR`, which a plan for any page would only check row by row.
NEWEST_FIRST: Final[LiteralString] = """
   AND (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::text)
 ORDER BY created_at DESC, id DESC
 LIMIT %(limit)s
"""
_BEGINNING: Final = Position(datetime.max.replace(tzinfo=UTC), "")


def page_params(before: Position | None, limit: int) -> dict[str, Any]:
    """Return the parameters of `NEWEST_FIRST` for the page after position `before`; None is the first page."""
    before = before or _BEGINNING
    return {"before_at": before.created_at, "before_id": before.id, "limit": limit}
