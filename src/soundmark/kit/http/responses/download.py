"""Responses that are files."""

from collections.abc import Callable, Mapping
from typing import IO, Final

from starlette.responses import Response

from soundmark.kit.http.asgi import Receive, Scope, Send

_CHUNK_BYTES: Final = 64 * 1024


class Download(Response):
    """A response with the content of a file whose position is at its end; the file is closed however the sending ends.

    `name` is the suggested file name: ASCII without quotes. `on_closed` is called after the file was closed.
    """

    def __init__(
        self,
        content: IO[bytes],
        media_type: str,
        *,
        name: str,
        headers: Mapping[str, str],
        on_closed: Callable[[], object] = lambda: None,
    ) -> None:
        length = content.tell()
        content.seek(0)
        self._content: Final = content
        self._on_closed: Final = on_closed
        own = {"content-disposition": f'attachment; filename="{name}"', "content-length": str(length)}
        super().__init__(None, media_type=media_type, headers={**headers, **own})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        try:
            with self._content as content:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                while chunk := content.read(_CHUNK_BYTES):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._on_closed()
