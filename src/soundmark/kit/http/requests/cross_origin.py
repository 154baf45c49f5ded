"""Responses that pages of any origin may read (CORS, according to the Fetch standard).

Starlette's middleware has one policy for a whole app and answers a preflight with 200. Here a few paths are open to
every origin and all others to none, so the headers are constant.
"""

from collections.abc import Collection
from typing import Final

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.http.asgi import AsgiApp, Header, Message, Receive, Scope, Send
from soundmark.kit.http.requests.edge import request_id

_MAX_AGE_S: Final = 86400  # Contract, section 1.
_ANY_ORIGIN: Final = (b"access-control-allow-origin", b"*")

# The headers of every response of such a path. They are the same for all origins, so that caches may store it.
READABLE_HEADERS: Final[tuple[Header, ...]] = (
    _ANY_ORIGIN,
    (b"access-control-expose-headers", b"RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"),
)


def is_preflight(scope: Scope) -> bool:
    """Return whether a request is a preflight, with which a browser asks for permission to send another."""
    if scope["method"] != "OPTIONS":
        return False
    names = {name for name, _ in scope["headers"]}
    return b"origin" in names and b"access-control-request-method" in names


class Preflight:
    """The response to every preflight of a path that allows one method with one additional request header."""

    def __init__(self, allowed_header: str, entropy: Entropy, *, method: bytes = b"GET") -> None:
        self._entropy: Final = entropy
        self._headers: Final[list[Header]] = [
            _ANY_ORIGIN,
            (b"access-control-allow-methods", method),
            (b"access-control-allow-headers", allowed_header.encode()),
            (b"access-control-max-age", b"%d" % _MAX_AGE_S),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        identity = request_id(scope["headers"], self._entropy)
        headers = [*self._headers, (b"x-request-id", identity.encode())]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


class CrossOrigin:
    """An ASGI app around `app` that opens `paths`, and paths that begin with one of `prefixes`, to every origin."""

    def __init__(self, app: AsgiApp, preflight: Preflight, paths: Collection[str], prefixes: tuple[str, ...]) -> None:
        self._app: Final = app
        self._preflight: Final = preflight
        self._paths: Final = frozenset(paths)
        self._prefixes: Final = prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._is_open(scope["path"]):
            await self._app(scope, receive, send)
        elif is_preflight(scope):
            await self._preflight(scope, receive, send)
        else:
            await self._app(scope, receive, _make_readable(send))

    def _is_open(self, path: str) -> bool:
        return path in self._paths or path.startswith(self._prefixes)


def _make_readable(send: Send) -> Send:
    async def send_readable(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *READABLE_HEADERS]}
        await send(message)

    return send_readable
