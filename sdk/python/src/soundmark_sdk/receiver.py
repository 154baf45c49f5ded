"""Resolving, verifying and measuring without asyncio in sight."""

from typing import Self

import httpx2

from soundmark_sdk.async_receiver import AsyncReceiver
from soundmark_sdk.clock import Clock
from soundmark_sdk.loop_thread import LoopThread
from soundmark_sdk.measuring import measure as measure
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
        transport: httpx2.AsyncBaseTransport | None = None,
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
        self._loop = LoopThread("receiver", end=self._receiver.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; closing again does nothing.

        Whoever still waits in `resolve` gets the RuntimeError of a closed receiver.
        """
        self._loop.close()

    def resolve(self, token: str) -> Resolution:
        """Return the verified intent behind a broadcast token (`Frame.token`).

        It blocks the calling thread, so asyncio programs take `AsyncReceiver`.

        Raises: ReceiverFailure, and nothing else, when there is no verified intent. RuntimeError after `close`.
        Source: API v1, "Receiver-facing"; wire contract, section 4.
        """
        return self._loop.run(lambda: self._receiver.resolve(token))
