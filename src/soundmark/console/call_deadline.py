"""One limit for all calls to Core that one visit makes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final, cast

import httpx2

# uvloop rounds times to milliseconds, so that a timeout ends up to half of one before its moment.
_ROUNDED_S: Final = 0.001


class CallDeadline:
    """The moment at which the calls of a visit end, however many they are."""

    def __init__(self, timeout_s: float) -> None:
        # The clock that asyncio measures timeouts with.
        self._end_s: float | None = asyncio.get_running_loop().time() + timeout_s

    @property
    def end_s(self) -> float | None:
        """The deadline in seconds of the event loop's clock, or None without one."""
        return self._end_s

    @property
    def has_passed(self) -> bool:
        """Whether the calls have ended, or a timeout may have ended them."""
        return self._end_s is not None and asyncio.get_running_loop().time() >= self._end_s - _ROUNDED_S

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let the calls within the block take as long as the client lets each of them."""
        end_s, self._end_s = self._end_s, None
        try:
            yield
        finally:
            self._end_s = end_s


class BoundedTransport(httpx2.AsyncBaseTransport):
    """The connections to Core for one visit, until its deadline: no call begins after it, and none goes on."""

    def __init__(self, transport: httpx2.AsyncBaseTransport, deadline: CallDeadline) -> None:
        self._transport: Final = transport
        self._deadline: Final = deadline

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises: httpx2.TransportError. TimeoutError."""
        if self._deadline.has_passed:
            # An error of connecting, because Core was sent nothing.
            raise httpx2.ConnectTimeout("the time for the calls of this visit is over")
        end_s = self._deadline.end_s
        async with asyncio.timeout_at(end_s):
            response = await self._transport.handle_async_request(request)
        response.stream = _BoundedStream(cast("httpx2.AsyncByteStream", response.stream), end_s)
        return response

    async def aclose(self) -> None:
        """Leave the connections open: they are shared."""


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that must have arrived by a moment."""

    def __init__(self, stream: httpx2.AsyncByteStream, end_s: float | None) -> None:
        self._stream: Final = stream
        self._end_s: Final = end_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises: TimeoutError."""
        chunks = aiter(self._stream)
        while True:
            try:
                async with asyncio.timeout_at(self._end_s):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
