"""The sandbox answers this machine only, and no page of another site may act in it."""

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send
from soundmark.kit.text.validation import is_loopback_host

_SAFE: Final = frozenset({"GET", "HEAD"})


class LocalOnly:
    """An app that answers requests for a loopback host, and only forms of its own pages.

    Otherwise any site that a person visits could reach the sandbox by a name that leads here.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app: Final = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(raw=scope["headers"])
            host = headers.get("host", "")
            if not is_loopback_host(urlsplit(f"//{host}").hostname or ""):
                await PlainTextResponse("The sandbox answers this machine only.\n", 403)(scope, receive, send)
                return
            origin = headers.get("origin")
            if origin is not None and scope["method"] not in _SAFE and urlsplit(origin).netloc != host:
                await PlainTextResponse("This form is not from the sandbox.\n", 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)
