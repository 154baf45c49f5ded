"""Bounded memory: a mapping that forgets its oldest items."""

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

_ITEMS_MAX: Final = 10_000  # A storm of 10,000 payments is the most that a test makes.

V = TypeVar("V")


class Shelf(Generic[V]):
    """Items by their id, in the order in which they were added; the oldest is forgotten when there are too many."""

    def __init__(self, items_max: int = _ITEMS_MAX) -> None:
        self._items_max: Final = items_max
        self._items: Final[dict[str, V]] = {}

    def add(self, key: str, item: V) -> V:
        """Add an item, or replace the one of that id."""
        self._items[key] = item
        if len(self._items) > self._items_max:
            del self._items[next(iter(self._items))]
        return item

    def find(self, key: str) -> V | None:
        """Return the item of that id, if it is still known."""
        return self._items.get(key)

    def remove(self, key: str) -> bool:
        """Forget the item of that id; return whether it was known."""
        return self._items.pop(key, None) is not None

    def newest_first(self) -> list[V]:
        """Return all items, the newest first."""
        return list(reversed(self._items.values()))

    def __iter__(self) -> Iterator[V]:
        return iter(list(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)

    def clear(self) -> None:
        """Forget every item."""
        self._items.clear()
