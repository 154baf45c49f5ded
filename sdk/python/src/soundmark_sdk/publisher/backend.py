"""The reference backend as an ASGI application, without a framework."""

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from soundmark_sdk.delivering import EVENT_BYTES_MAX, failure_for
from soundmark_sdk.failures import DeliveryFailure, DeliveryReason
from soundmark_sdk.publisher.events import check_event
from soundmark_sdk.publisher.forwarding import AsyncPublisher
from soundmark_sdk.publisher.tokens import ReportingTokens, SessionRefused

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log: Final = logging.getLogger("soundmark_sdk.publisher")

# A receiver has its event in hand; one that takes longer than this is no receiver.
_READ_S: Final = 10.0
# What is waiting for Audience at one time; beyond it receivers are asked to come again.
_FORWARDING_MAX: Final = 256
_AGAIN_S: Final = 1

# The reason's status and problem code, as Audience has them, so that a receiver reads one contract. What is between the
# publisher and the service is none of a receiver's business: it keeps its event and comes again.
_ANSWERS: Final[dict[DeliveryReason, tuple[int, str]]] = {
    "unauthenticated": (503, "audience_unavailable"),
    "event_invalid": (422, "validation_failed"),
    "proof_invalid": (422, "proof_invalid"),
    "proof_replayed": (409, "proof_replayed"),
    "event_conflict": (409, "event_conflict"),
    "integration_revoked": (409, "integration_revoked"),
    "entitlement_required": (409, "entitlement_required"),
    "quota_exceeded": (429, "event_quota_exceeded"),
    "rate_limited": (503, "audience_unavailable"),
    "temporarily_unavailable": (503, "audience_unavailable"),
    "network": (503, "audience_unavailable"),
    "unintelligible": (503, "audience_unavailable"),
}


class _Refused(Exception):  # noqa: N818 - an answer, as a way out
    def __init__(self, status: int, code: str, **headers: str) -> None:
        super().__init__(code)
        self.status, self.code, self.headers = status, code, headers


class Backend:
    """`POST /v1/events` for receivers with a reporting token, `GET /healthz` for whoever runs it.

    Judged in this order, and nothing later is touched once something is refused: the token, the content type, the size,
    the event and its integration; then the event's bytes are signed and forwarded as they came. Closes `publisher` when
    the server ends (ASGI lifespan).
    """

    def __init__(self, publisher: AsyncPublisher, tokens: ReportingTokens) -> None:
        """Raises: ValueError when the two are of different integrations."""
        if publisher.integration_id != tokens.integration_id:
            raise ValueError("The publisher and the tokens must be of the same integration.")
        self._publisher: Final = publisher
        self._tokens: Final = tokens
        self._forwarding = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the ASGI server."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._answer(scope, receive, send)
            case _:
                raise NotImplementedError("Only http is served.")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._publisher.aclose()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            match scope["path"], scope["method"]:
                case "/v1/events", "POST":
                    status, document = await self._take(scope, receive)
                    await _send(send, status, document)
                case "/healthz", "GET" | "HEAD":
                    await _send(send, 200, {"status": "ok"})
                case "/v1/events", _:
                    await _refuse(send, _Refused(405, "method_not_allowed", allow="POST"))
                case _:
                    await _refuse(send, _Refused(404, "not_found"))
        except _Refused as refused:
            await _refuse(send, refused)

    async def _take(self, scope: Scope, receive: Receive) -> tuple[int, dict[str, Any]]:
        self._admit(scope)
        if _header(scope, b"content-type").partition(";")[0].strip().lower() != "application/json":
            raise _Refused(415, "unsupported_media_type")
        body = await _read(receive)
        try:
            event_id = check_event(body, self._publisher.integration_id)
            outcome = await self._forward(body)
        except DeliveryFailure as failure:
            raise _refusal(failure) from None
        return (201 if outcome == "recorded" else 200), {"event_id": event_id, "status": outcome}

    def _admit(self, scope: Scope) -> None:
        scheme, _, token = _header(scope, b"authorization").partition(" ")
        try:
            # What has another scheme is judged like a token that is empty.
            self._tokens.check(token if scheme.lower() == "bearer" else "")
        except SessionRefused as refused:
            # Which of the four, the publisher reads here; whoever holds the token is not told.
            _log.info("refused a reporting session: %s", refused.refusal)
            raise _Refused(401, "unauthenticated", www_authenticate="Bearer") from None

    async def _forward(self, body: bytes) -> str:
        if self._forwarding >= _FORWARDING_MAX:
            raise failure_for("rate_limited", _AGAIN_S)
        self._forwarding += 1
        try:
            return await self._publisher.forward(body)
        finally:
            self._forwarding -= 1


async def _refuse(send: Send, refused: _Refused) -> None:
    problem = {"type": "about:blank", "title": refused.code, "status": refused.status, "code": refused.code}
    await _send(send, refused.status, problem, content_type="application/problem+json", **refused.headers)


def _refusal(failure: DeliveryFailure) -> _Refused:
    status, code = _ANSWERS[failure.reason]
    if status == 503 or failure.reason in {"integration_revoked", "entitlement_required", "quota_exceeded"}:  # noqa: PLR2004 - unavailable
        # Of interest to the publisher, who can do something about it.
        _log.warning("an event was not forwarded: %s", failure.reason)
    again_s = failure.retry_after_s if failure.retry_after_s is not None else _AGAIN_S
    headers = {"retry_after": str(math.ceil(again_s))} if status in {429, 503} else {}
    return _Refused(status, code, **headers)


def _header(scope: Scope, name: bytes) -> str:
    """Return the one header of this name, or nothing where there is none or more than one."""
    values = [value for field, value in scope["headers"] if field.lower() == name]
    return values[0].decode("latin-1") if len(values) == 1 else ""


async def _read(receive: Receive) -> bytes:
    """Return the request's body, whole and in time."""
    body = bytearray()
    try:
        async with asyncio.timeout(_READ_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Refused(400, "malformed_json")
                body += message.get("body", b"")
                if len(body) > EVENT_BYTES_MAX:
                    raise _Refused(413, "payload_too_large")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise _Refused(408, "request_timeout") from None


async def _send(
    send: Send, status: int, document: dict[str, Any], *, content_type: str = "application/json", **headers: str
) -> None:
    body = json.dumps(document).encode()
    fields = {"content-type": content_type, "content-length": str(len(body)), "cache-control": "no-store", **headers}
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})
