"""Answers that are ready, and wait until they are released."""

import asyncio
from collections import defaultdict
from typing import Final


class HeldAnswers:
    """The answers of each system that wait."""

    def __init__(self) -> None:
        self._waiting: Final[defaultdict[str, list[asyncio.Event]]] = defaultdict(list)
        self._arrived: Final = asyncio.Event()

    async def hold(self, system: str) -> None:
        """Wait until the answers of a system are released."""
        released = asyncio.Event()
        self._waiting[system].append(released)
        self._arrived.set()
        await released.wait()

    async def until_held(self, system: str, count: int) -> None:
        """Wait until this many answers of a system are held."""
        while len(self._waiting[system]) < count:
            self._arrived.clear()
            await self._arrived.wait()

    def release(self, system: str) -> None:
        """Let the answers of a system go."""
        for released in self._waiting.pop(system, ()):
            released.set()

    def clear(self) -> None:
        """Let every answer go."""
        for system in list(self._waiting):
            self.release(system)
