"""Writing responses: uvicorn's cycle of one request and its response, and the refusal of one that cannot be read."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.responses.plain_response import WHOLE_RESPONSE
from soundmark.kit.http.server.write_coalescing import GatheringTransport

_entropy: Final = SystemEntropy()


class ResponseCycle(RequestResponseCycle):
    """uvicorn's cycle, which also accepts a whole response as bytes, and then neither checks nor copies its headers."""

    forget_task: Callable[[], None]

    async def run_asgi(self, app: Any) -> None:
        try:
            await super().run_asgi(app)
        finally:
            self.forget_task()

    async def send(self, message: Any) -> None:
        if message["type"] != WHOLE_RESPONSE:
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        assert not self.response_started, "a whole response comes alone"
        self.response_started = self.response_complete = True
        self.message_event.set()
        default_head = _head_of(self.default_headers)
        end = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        transport: GatheringTransport = self.transport  # type: ignore[assignment]  # as `Connection` made it
        status_line = STATUS_LINE[message["status"]]
        transport.write_whole(b"".join((status_line, default_head, message["head"], end, message["body"])))
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def make_refusal(status: HTTPStatus, text: str, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the response to a request that never reaches the application, after which the connection ends."""
    body = text.encode() + b"\n"
    identity = b"req_" + _entropy.take(16).hex().encode()
    return b"".join(
        (
            STATUS_LINE[status], _head_of(default_headers),
            b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n" % len(body),
            b"cache-control: no-store\r\nx-content-type-options: nosniff\r\nx-request-id: ", identity,
            b"\r\nconnection: close\r\n\r\n", body,
        )
    )  # fmt: skip


_head_made: tuple[Iterable[tuple[bytes, bytes]], bytes] = ((), b"")


def _head_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Render headers as bytes. uvicorn replaces the default headers each second, so the last result is cached."""
    global _head_made  # noqa: PLW0603 - one result, for the newest headers
    known, head = _head_made
    if known is not headers:
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        _head_made = (headers, head)
    return head
