"""A path on which one client IP address may send a number of requests in each hour of the clock."""

from typing import Final

import structlog

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.http.asgi import AsgiApp, Header, Message, Receive, Scope, Send
from soundmark.kit.http.limits.local import RateLimit
from soundmark.kit.http.requests.edge import request_id
from soundmark.kit.http.requests.refusals import ClientAddresses
from soundmark.kit.http.responses.plain_response import PlainResponses
from soundmark.kit.http.responses.problems import RateLimited

HOUR_S: Final = 3600
_log: Final = structlog.get_logger()


class LimitedPath:
    """An ASGI app around `app` that counts the requests with `method` to `path`, whatever becomes of them.

    Clients are known by the digests of their addresses, whose key lasts for an hour of the clock, and so does the
    count. Every response has the headers of the limit, which is called `name`.

    Source: draft-ietf-httpapi-ratelimit-headers.
    """

    def __init__(
        self,
        app: AsgiApp,
        *,
        method: str,
        path: str,
        name: str,
        quota: int,
        limit: RateLimit,
        clients: ClientAddresses,
        base_url: str,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._app: Final = app
        self._method: Final = method
        self._path: Final = path
        self._name: Final = name
        self._policy: Final = (b"ratelimit-policy", f'"{name}";q={quota};w={HOUR_S}'.encode())
        self._limit: Final = limit
        self._clients: Final = clients
        self._responses: Final = PlainResponses(base_url)
        self._clock: Final = clock
        self._entropy: Final = entropy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != self._method:
            await self._app(scope, receive, send)
            return
        client = self._clients.digest_of(scope)
        verdict = await self._limit.hit(client)
        left_s = HOUR_S - int(self._clock.unix_s()) % HOUR_S
        limited = (self._policy, (b"ratelimit", f'"{self._name}";r={verdict.remaining};t={left_s}'.encode()))
        if verdict.is_allowed:
            await self._app(scope, receive, _with_headers(send, limited))
            return
        if verdict.is_first_refused:
            _log.warning("path_limited", limit=self._name, address=client.hex(), for_s=left_s)
        refused = RateLimited(headers={"retry-after": str(left_s)})
        await self._responses.send_problem(send, refused, request_id(scope["headers"], self._entropy), *limited)


def _with_headers(send: Send, headers: tuple[Header, ...]) -> Send:
    async def send_limited(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return send_limited
