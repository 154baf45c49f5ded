"""Let web pages report: reporting tokens for people who agreed on a page, and answers that browsers let it read."""

import json
import re
from collections.abc import Collection, MutableMapping
from typing import Any, Final

from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.measuring import Consent
from soundmark_sdk.publisher.backend import (
    Backend,
    Receive,
    RequestRefused,
    Scope,
    Send,
    read_body,
    read_header,
    refuse,
    send_document,
)
from soundmark_sdk.publisher.tokens import LIFETIME_MAX, ReportingTokens

_PATHS: Final = ("/v1/events", "/v1/reporting-tokens")
_ORIGIN: Final = re.compile(r"https://[^/\s?#@]+|http://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?")
_PREFLIGHT_S: Final = 600


class WebPages:
    """A backend that pages of certain origins may use as well, through `fetch`.

    `POST /v1/reporting-tokens` with `{"integration_id": …, "consent": true}` answers `{"token": …, "expires_in": …}` to
    a page of one of the origins. The page vouches for the consent. It has no session, so anybody can pretend to be the
    page; a publisher whose receivers have sessions issues tokens to those alone.
    """

    def __init__(
        self, backend: Backend, tokens: ReportingTokens, origins: Collection[str], *, clock: Clock | None = None
    ) -> None:
        """Raises: ValueError for an origin that is not https, or http on a loopback address."""
        for origin in origins:
            if _ORIGIN.fullmatch(origin) is None:
                raise ValueError("An origin is https://host, or http:// with a loopback address.")
        self._backend: Final = backend
        self._tokens: Final = tokens
        self._origins: Final = frozenset(origins)
        self._clock: Final[Clock] = SystemClock() if clock is None else clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the ASGI server."""
        if scope["type"] != "http" or scope["path"] not in _PATHS:
            await self._backend(scope, receive, send)
            return
        origin = read_header(scope, b"origin")
        is_page = origin in self._origins
        send_to_page = _allow(send, origin) if is_page else send
        try:
            if scope["method"] == "OPTIONS" and is_page:
                await _answer_preflight(send_to_page)
            elif scope["path"] == "/v1/events":
                await self._backend(scope, receive, send_to_page)
            else:
                await self._issue(scope, receive, send_to_page, is_page=is_page)
        except RequestRefused as refused:
            await refuse(send_to_page, refused)

    async def _issue(self, scope: Scope, receive: Receive, send: Send, *, is_page: bool) -> None:
        if scope["method"] != "POST":
            raise RequestRefused(405, "method_not_allowed", allow="POST")
        if not is_page:
            raise RequestRefused(403, "forbidden")
        # A form of another page cannot send this type, so it never reaches this without a preflight.
        if read_header(scope, b"content-type").partition(";")[0].strip().lower() != "application/json":
            raise RequestRefused(415, "unsupported_media_type")
        if _parse(await read_body(receive)) != {"integration_id": self._tokens.integration_id, "consent": True}:
            raise RequestRefused(422, "validation_failed")
        token = self._tokens.issue(Consent(self._tokens.integration_id, given_at=self._clock.now()))
        await send_document(send, 201, {"token": token, "expires_in": int(LIFETIME_MAX.total_seconds())})


def _parse(body: bytes) -> Any:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "malformed_json") from None
    # In Python, 1 equals True.
    return document if isinstance(document, dict) and document.get("consent") is True else None


async def _answer_preflight(send: Send) -> None:
    headers = [
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", b"authorization, content-type"),
        (b"access-control-max-age", str(_PREFLIGHT_S).encode()),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _allow(send: Send, origin: str) -> Send:
    """Return a `send` whose answers this origin may read, with the pause that they ask for."""

    async def send_to_page(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            allowed = [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", b"retry-after"),
                (b"vary", b"Origin"),
            ]
            message = {**message, "headers": [*message["headers"], *allowed]}
        await send(message)

    return send_to_page
