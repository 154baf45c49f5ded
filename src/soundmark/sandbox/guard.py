"""The sandbox answers this machine only, and no page of another site may act in it."""

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send
from soundmark.kit.text.validation import is_loopback_host, split_host_header

_QUERY_BYTES_MAX: Final = 8 * 1024  # Decoded in half a millisecond, whatever it holds.
_SAFE: Final = frozenset({"GET", "HEAD"})


class LocalOnly:
    """An app that answers requests for a loopback host, and only forms of its own pages. No query is long.

    Otherwise any site that a person visits could reach the sandbox by a name that leads here.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app: Final = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _judge(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, text = refusal
        await PlainTextResponse(text, status)(scope, receive, send)


def _judge(scope: Scope) -> tuple[int, str] | None:
    """Return the status and the text with which a request is refused, or None."""
    headers = Headers(raw=scope["headers"])
    host = headers.get("host", "")
    named = split_host_header(host)
    if named is None or not is_loopback_host(named[0]):
        return 403, "The sandbox answers this machine only.\n"
    if len(scope["query_string"]) > _QUERY_BYTES_MAX:
        return 414, "This query is too long.\n"
    origin = headers.get("origin")
    if origin is not None and scope["method"] not in _SAFE and urlsplit(origin).netloc != host:
        return 403, "This form is not from the sandbox.\n"
    return None
