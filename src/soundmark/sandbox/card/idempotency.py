"""Idempotency keys of the card provider.

The first status and body of a key are stored, a 500 included, and answered again for a day. A refused parameter is not
stored, neither is what the work never reached, nor an answer with the advice to ask again.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from soundmark.kit.clock import Clock
from soundmark.sandbox.card.errors import CardError
from soundmark.sandbox.operation import Handler
from soundmark.sandbox.shelf import Shelf

_LIFE: Final = timedelta(hours=24)
_KEY_CHARS_MAX: Final = 255
_STORED_STATUSES: Final = frozenset({200, 500})


@dataclass(frozen=True, slots=True)
class _StoredResponse:
    digest: bytes
    created_at: datetime
    status: int
    body: bytes
    request_id: str


class IdempotencyKeys:
    """The keys of an account."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._stored: Final[Shelf[_StoredResponse]] = Shelf()
        self._working: Final[set[str]] = set()

    async def apply(self, request: Request, request_id: str, handler: Handler) -> Response:
        """Answer with `handler`, or with what was stored under the request's key.

        Raises: CardError.
        """
        key = request.headers.get("idempotency-key")
        if key is None or request.method != "POST":
            return await handler(request)
        if not 0 < len(key) <= _KEY_CHARS_MAX:
            raise CardError(400, "Idempotency keys can have at most 255 characters.", error_type="idempotency_error")
        digest = hashlib.sha256(request.url.path.encode() + b"\0" + await request.body()).digest()
        if key in self._working:
            message = f"There is currently another in-progress request using this Idempotent Key: {key}."
            raise CardError(409, message, error_type="idempotency_error", code="idempotency_key_in_use")
        stored = self._stored.find(key)
        if stored is not None and self._clock.now() - stored.created_at < _LIFE:
            return _replay(stored, key, digest)
        self._working.add(key)
        try:
            response = await handler(request)
        finally:
            self._working.discard(key)
        is_final = response.headers.get("stripe-should-retry") != "true"
        if is_final and response.status_code in _STORED_STATUSES and response.media_type == "application/json":
            answered = _StoredResponse(
                digest, self._clock.now(), response.status_code, bytes(response.body), request_id
            )
            self._stored.add(key, answered)
        response.headers["idempotency-key"] = key
        return response

    def clear(self) -> None:
        """Forget every key."""
        self._stored.clear()


def _replay(stored: _StoredResponse, key: str, digest: bytes) -> Response:
    if stored.digest != digest:
        raise CardError(
            400,
            "Keys for idempotent requests can only be used with the same parameters they were first used with. "
            f"Try using a key other than '{key}' if you meant to execute a different request.",
            error_type="idempotency_error",
        )
    headers = {
        "idempotency-key": key,
        "idempotent-replayed": "true",
        "original-request": stored.request_id,
    }
    return Response(stored.body, stored.status, headers, "application/json")
