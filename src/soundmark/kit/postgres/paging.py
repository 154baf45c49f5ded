"""Keyset pages of a list in SQL: the end of its statement, and the parameters of that."""

from typing import Any, Final, LiteralString

from soundmark.kit.text.paging import Position

# For a table with the columns created_at and id, behind a condition.
NEWEST_FIRST: Final[LiteralString] = """
   AND (%(before_at)s::timestamptz IS NULL
        OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::text))
 ORDER BY created_at DESC, id DESC
 LIMIT %(limit)s
"""


def page_params(before: Position | None, limit: int) -> dict[str, Any]:
    """Return the parameters of `NEWEST_FIRST` for the page after position `before`."""
    return {"before_at": before and before.created_at, "before_id": before and before.id, "limit": limit}
