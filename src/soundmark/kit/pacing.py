"""Pacing of long work that shares a process with requests."""

import asyncio
import time
from typing import Final

# The event loop's share of its processor above which requests would wait for the work. The work's own part of that is
# about a third (bench/exports.py).
_BUSY_SHARE: Final = 0.5
_REST_FACTOR: Final = 3


class Pacer:
    """Makes long work rest while the event loop is busy with other things, so that it takes a small part of its time.

    A step after which the loop was idle is followed by the next one at once. What other processes do on the same
    processor does not count.
    """

    def __init__(self) -> None:
        self._since_s = time.perf_counter()
        self._busy_s = time.thread_time()
        self._rested_s = 0.0

    async def rest(self) -> None:
        """Rest after a step for some multiple of the time that it took, if the loop was busy since the last rest."""
        now_s, busy_s = time.perf_counter(), time.thread_time()
        passed_s, busy_share_s = now_s - self._since_s, busy_s - self._busy_s
        self._since_s, self._busy_s = now_s, busy_s
        worked_s = passed_s - self._rested_s
        self._rested_s = 0.0
        if busy_share_s > passed_s * _BUSY_SHARE:
            await asyncio.sleep(worked_s * _REST_FACTOR)
            self._rested_s = time.perf_counter() - now_s
