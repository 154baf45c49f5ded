"""Limits on large pieces of work: few at once in a process, and one for each key."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final
from weakref import WeakValueDictionary


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


class Turns:
    """Lets one piece of work run at a time for each key, in the order in which they asked."""

    def __init__(self) -> None:
        self._locks: Final[WeakValueDictionary[str, asyncio.Lock]] = WeakValueDictionary()

    @contextlib.asynccontextmanager
    async def take(self, key: str) -> AsyncIterator[None]:
        """Wait for the turn, which ends with the block."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()  # Kept by everybody who waits.
        async with lock:
            yield
