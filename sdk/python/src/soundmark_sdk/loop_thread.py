"""An event loop in a thread of its own: how blocking code uses what is written for asyncio."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for any number of threads until it is closed.

    Blocking sockets know only a limit for each read, under which a server that sends one byte now and then would hold
    the caller for hours; a loop can give up on the whole request. `what` names the owner in its errors.
    """

    def __init__(self, what: str, *, end: Callable[[], Awaitable[None]]) -> None:
        self._what: Final = what
        self._end: Final = end
        self._closed = False
        # What is handed to the loop while it is held is there before the loop is told to end, and so is ended with it.
        self._handing_over = threading.Lock()
        self._loop = asyncio.new_event_loop()
        # A daemon, so that a program which forgets to close can still end.
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"soundmark-{what}", daemon=True)
        self._thread.start()

    def run(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what the coroutine returns that `begin` makes, once it is done.

        Raises: what the coroutine raises. RuntimeError when this is closed, before or meanwhile.
        """
        with self._handing_over:
            if self._closed:
                raise RuntimeError(f"This {self._what} is closed.")
            running = asyncio.run_coroutine_threadsafe(begin(), self._loop)
        try:
            return running.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError(f"This {self._what} was closed.") from None
        finally:
            # Ctrl-C ends the wait; the request must not outlive it. After a result this does nothing.
            running.cancel()

    def close(self) -> None:
        """Cancel what runs, await `end`, and end the thread; closing again does nothing."""
        with self._handing_over:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _shut_down(self) -> None:
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._end()
