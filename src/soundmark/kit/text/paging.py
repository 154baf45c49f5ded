"""Keyset pages, newest first, and the cursors that lead from one to the next."""

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final, Generic, TypeVar

from soundmark.kit.http.responses.problems import FieldError, Kind, Problem
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 100
# The longest position ends with a person's subject of 255 characters, at up to four bytes: 1450 bytes in all.
CURSOR_CHARS_MAX: Final = 2048
_MAC_BYTES: Final = 16
# The shortest has a time, `["2026-11-20T10:00:00.000Z","x"]`, after its MAC.
CURSOR_CHARS_MIN: Final = (_MAC_BYTES + 32) * 4 // 3

T = TypeVar("T")
V = TypeVar("V")


class InvalidCursor(Problem):
    """The cursor is not from this list with the same tenant and filters."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "invalid_cursor"
    title: ClassVar = "The cursor does not belong to this list."


@dataclass(frozen=True, slots=True)
class Position:
    """The last entry of a page; the next page begins after it."""

    created_at: datetime
    id: str


# Before every entry of a list that is read oldest first.
BEGINNING: Final = Position(datetime.min.replace(tzinfo=UTC), "")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of entries, and where the next one begins; `next_position` None means the end."""

    entries: Sequence[T]
    next_position: Position | None


def cut_page(rows: Sequence[T], limit: int, position: Callable[[T], Position]) -> Page[T]:
    """Return a page of the first `limit` of `rows`; one row more means that there is a next page."""
    entries = rows[:limit]
    return Page(entries, position(entries[-1]) if len(rows) > limit else None)


class Cursors:
    """A codec of cursors, which are opaque, authenticated, and bound to one list with its tenant and filters."""

    def __init__(self, key: bytes) -> None:
        self._key: Final = key

    def bind(self, route: str, /, **bound_to: str | None) -> "ListCursors":
        """Return the cursors of one list, for one tenant and these filters."""
        return ListCursors(self._key, json.dumps([route, sorted(bound_to.items())], separators=(",", ":")).encode())


class ListCursors:
    """The cursors of one list with its tenant and filters."""

    def __init__(self, key: bytes, binding: bytes) -> None:
        self._key: Final = key
        self._binding: Final = len(binding).to_bytes(4, "big") + binding

    def write(self, position: Position | None) -> str | None:
        """Return the cursor for the page after `position`; None for None."""
        if position is None:
            return None
        parts = [format_timestamp(position.created_at), position.id]
        content = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()
        return base64url.encode(self._mac(content) + content)

    def show(self, shape: Callable[..., V], page: Page[T], view: Callable[[T], object]) -> V:
        """Return a page in its published shape: the view of each entry, and the cursor for the next page."""
        return shape(data=[view(entry) for entry in page.entries], next_cursor=self.write(page.next_position))

    def read(self, text: str | None) -> Position | None:
        """Return the position in a cursor of the same list; None for None.

        Raises: InvalidCursor for an edited cursor and for one of another route, tenant or filter.
        """
        if text is None:
            return None
        try:
            if len(text) > CURSOR_CHARS_MAX:
                raise _make_refusal()
            data = base64url.decode(text)
        except ValueError:
            raise _make_refusal() from None
        mac, content = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(content)):
            raise _make_refusal()
        created_at, identity = json.loads(content)
        return Position(parse_timestamp(created_at), identity)

    def _mac(self, content: bytes) -> bytes:
        return hmac.digest(self._key, self._binding + content, hashlib.sha256)[:_MAC_BYTES]


def _make_refusal() -> InvalidCursor:
    return InvalidCursor(errors=(FieldError("query", "/cursor", "must be the next_cursor of the previous page"),))
