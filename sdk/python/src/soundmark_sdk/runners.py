"""Two ways to run a coroutine: where it is called, or for blocking code in the thread of an event loop.

The public classes for asyncio use `AsyncRunner`. `make_blocking.py` generates their blocking twins, which run the same
coroutines on `BlockingRunner`.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class AsyncRunner:
    """A runner that awaits coroutines in the caller's own task."""

    def __init__(self, owner: str, *, end: Callable[[], Awaitable[None]]) -> None:
        self._owner: Final = owner
        self._end: Final = end

    async def run(self, begin: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the coroutine that `begin` makes from these arguments."""
        return await begin(*args, **kwargs)

    async def aclose(self) -> None:
        """Await `end`."""
        await self._end()


class BlockingRunner:
    """A runner of coroutines for any number of threads, on an event loop in its own thread, until it is closed.

    A blocking socket has a timeout only for each read, so a server that sends one byte now and then could hold the
    caller for hours. An event loop can give up on the whole request. `owner` names the object that the caller closes.
    """

    def __init__(self, owner: str, *, end: Callable[[], Awaitable[None]]) -> None:
        self._owner: Final = owner
        self._end: Final = end
        self._closed = False
        # While a thread holds this lock, its coroutine reaches the loop before the request to stop does.
        self._submitting = threading.Lock()
        self._loop = asyncio.new_event_loop()
        # A daemon, so that a program that forgets to close can still exit.
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"soundmark-{owner}", daemon=True)
        self._thread.start()

    def run(self, begin: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Wait for the coroutine that `begin` makes from these arguments, and return its result.

        Raises: whatever the coroutine raises. RuntimeError when this was closed, before the call or during it.
        """
        with self._submitting:
            if self._closed:
                raise RuntimeError(f"This {self._owner} is closed.")
            running = asyncio.run_coroutine_threadsafe(begin(*args, **kwargs), self._loop)
        try:
            return running.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError(f"This {self._owner} was closed.") from None
        finally:
            # Ctrl-C ends the wait and must end the request too. After a result this does nothing.
            running.cancel()

    def close(self) -> None:
        """Cancel running coroutines, await `end`, and end the thread; closing again does nothing."""
        with self._submitting:
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
