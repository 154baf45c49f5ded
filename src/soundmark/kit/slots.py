"""Limits on large pieces of work: few at once in a process, and one for each key, in this process or in all."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final
from weakref import WeakValueDictionary

from soundmark.kit.http.limits.shared_keys import SharedKeys

_ASK_AGAIN_S: Final = 0.1


class Slots:
    """Lets `at_once` pieces of work run at a time, in the order in which they asked, and one for each key.

    The key is taken for longer than the work runs: until what the work has made is no longer needed. With `shared`, it
    is taken for all processes.
    """

    def __init__(self, at_once: int, shared: SharedKeys | None = None) -> None:
        self.running: Final = asyncio.Semaphore(at_once)
        self._shared: Final = shared
        self._taken: Final[set[str]] = set()

    async def take(self, key: str) -> bool:
        """Take the key; return False if it is taken already."""
        if key in self._taken:
            return False
        self._taken.add(key)
        try:
            is_ours = self._shared is None or await self._shared.take(key)
        except BaseException:
            self._taken.remove(key)
            raise
        if not is_ours:
            self._taken.remove(key)
        return is_ours

    def release(self, key: str) -> None:
        """Release a key that was taken."""
        self._taken.remove(key)
        if self._shared is not None:
            self._shared.release(key)

    async def aclose(self) -> None:
        """Close the connections, if there are any."""
        if self._shared is not None:
            await self._shared.aclose()


class Turns:
    """Lets one piece of work run at a time for each key, in the order in which they asked.

    With `shared`, one in all processes, which take turns in any order.
    """

    def __init__(self, shared: SharedKeys | None = None) -> None:
        self._shared: Final = shared
        self._locks: Final[WeakValueDictionary[str, asyncio.Lock]] = WeakValueDictionary()

    @contextlib.asynccontextmanager
    async def take(self, key: str) -> AsyncIterator[None]:
        """Wait for the turn, which ends with the block."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()  # Kept by everybody who waits.
        async with lock:
            if self._shared is None:
                yield
                return
            while not await self._shared.take(key):  # noqa: ASYNC110 - no process wakes another
                await asyncio.sleep(_ASK_AGAIN_S)
            try:
                yield
            finally:
                self._shared.release(key)

    async def aclose(self) -> None:
        """Close the connections, if there are any."""
        if self._shared is not None:
            await self._shared.aclose()
