"""Resolving and verifying without asyncio in sight."""

import asyncio
import concurrent.futures
import threading
from typing import Self

import httpx

from soundmark_sdk.async_receiver import AsyncReceiver
from soundmark_sdk.clock import Clock
from soundmark_sdk.records import Resolution


class Receiver:
    """A receiver of one service for blocking code, safe to share between threads.

    It runs an `AsyncReceiver` on an event loop in a thread of its own. Blocking sockets know only a limit for each
    read, under which a server that sends one byte now and then would hold the caller for hours; a loop can give up on
    the whole request. The settings are those of `AsyncReceiver`. Use it as a context manager, or `close` it.
    """

    def __init__(  # noqa: PLR0913 - each is a setting with a default, given by name
        self,
        base_url: str,
        *,
        timeout_s: float = 5.0,
        attempts_max: int = 3,
        retry_wait_max_s: float = 10.0,
        allow_insecure_http: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError as `AsyncReceiver` does."""
        self._receiver = AsyncReceiver(
            base_url,
            timeout_s=timeout_s,
            attempts_max=attempts_max,
            retry_wait_max_s=retry_wait_max_s,
            allow_insecure_http=allow_insecure_http,
            transport=transport,
            clock=clock,
        )
        self._closed = False
        # What is handed to the loop while it is held is there before the loop is told to end, and so is ended with it.
        self._handing_over = threading.Lock()
        self._loop = asyncio.new_event_loop()
        # A daemon, so that a program which forgets to close can still end.
        self._thread = threading.Thread(target=self._loop.run_forever, name="soundmark-receiver", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; closing again does nothing.

        Whoever still waits in `resolve` gets the RuntimeError of a closed receiver.
        """
        with self._handing_over:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def resolve(self, token: str) -> Resolution:
        """Return the verified intent behind a broadcast token (`Frame.token`).

        It blocks the calling thread, so asyncio programs take `AsyncReceiver`.

        Raises: ReceiverFailure, and nothing else, when there is no verified intent. RuntimeError after `close`.
        Source: API v1, "Receiver-facing"; wire contract, section 4.
        """
        with self._handing_over:
            if self._closed:
                raise RuntimeError("This receiver is closed.")
            resolving = asyncio.run_coroutine_threadsafe(self._receiver.resolve(token), self._loop)
        try:
            return resolving.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError("This receiver was closed.") from None
        finally:
            # Ctrl-C ends the wait; the request must not outlive it. After a result this does nothing.
            resolving.cancel()

    async def _shut_down(self) -> None:
        resolving = asyncio.all_tasks() - {asyncio.current_task()}
        for task in resolving:
            task.cancel()
        await asyncio.gather(*resolving, return_exceptions=True)
        await self._receiver.aclose()
