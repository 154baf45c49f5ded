"""A limit on large pieces of work: few at once in a process, and one for each key."""

import asyncio
from typing import Final


class Slots:
    """Lets `at_once` pieces of work run at a time, in the order in which they asked, and one for each key.

    The key is taken for longer than the work runs: until what the work has made is no longer needed.
    """

    def __init__(self, at_once: int) -> None:
        self.running: Final = asyncio.Semaphore(at_once)
        self._taken: Final[set[str]] = set()

    def take(self, key: str) -> bool:
        """Take the key; return False if it is taken already."""
        if key in self._taken:
            return False
        self._taken.add(key)
        return True

    def release(self, key: str) -> None:
        """Release a key that was taken."""
        self._taken.remove(key)
