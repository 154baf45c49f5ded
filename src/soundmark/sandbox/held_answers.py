"""Requests and answers that wait until they are released."""

import asyncio
from collections import defaultdict
from typing import Final


class HeldAnswers:
    """What waits of each system."""

    def __init__(self) -> None:
        self._waiting: Final[defaultdict[str, list[asyncio.Future[bool]]]] = defaultdict(list)
        self._arrived: Final = asyncio.Event()

    async def hold(self, system: str) -> bool:
        """Wait until the answers of a system are released; return False if they are cleared instead."""
        released: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[system].append(released)
        self._arrived.set()
        return await released

    async def until_held(self, system: str, count: int) -> None:
        """Wait until this many answers of a system are held."""
        while len(self._waiting[system]) < count:
            self._arrived.clear()
            await self._arrived.wait()

    def release(self, system: str) -> None:
        """Let the answers of a system go."""
        self._end(system, is_released=True)

    def clear(self) -> None:
        """Let every answer go, and forget the requests that wait for their work."""
        for system in list(self._waiting):
            self._end(system, is_released=False)

    def _end(self, system: str, *, is_released: bool) -> None:
        for released in self._waiting.pop(system, ()):
            if not released.done():  # The server may have cancelled it.
                released.set_result(is_released)
