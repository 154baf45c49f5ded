"""The reference backend as an ASGI application, without a framework."""

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from soundmark_sdk.delivery import EVENT_BYTES_MAX, make_failure
from soundmark_sdk.failures import DeliveryFailure, DeliveryReason
from soundmark_sdk.publisher._async.publisher import AsyncPublisher
from soundmark_sdk.publisher.events import check_event
from soundmark_sdk.publisher.tokens import ReportingTokens, SessionRefused

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log: Final = logging.getLogger("soundmark_sdk.publisher")

# A receiver has its event ready, so a sender that takes longer is not a receiver.
_READ_S: Final = 10.0
# Events that may wait for Audience at the same time. Further receivers are asked to try again.
_FORWARDING_MAX: Final = 256
_RETRY_AFTER_S: Final = 1

# The status and problem code of each reason, the same as Audience's, so that receivers need only one contract. Trouble
# between the publisher and the service does not concern a receiver: it keeps its event and tries again.
_ANSWERS: Final[dict[DeliveryReason, tuple[int, str]]] = {
    "unauthenticated": (503, "audience_unavailable"),
    "organization_suspended": (403, "organization_suspended"),
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
# The publisher, and no receiver, can do something about these.
_OF_PUBLISHER: Final[frozenset[DeliveryReason]] = frozenset(
    {"organization_suspended", "integration_revoked", "entitlement_required", "quota_exceeded"}
)


class RequestRefused(Exception):
    def __init__(self, status: int, code: str, **headers: str) -> None:
        super().__init__(code)
        self.status, self.code, self.headers = status, code, headers


class Backend:
    """`POST /v1/events` for receivers with a reporting token, and `GET /healthz` for operators.

    It checks the token, the content type, the size, and then the event and its integration, and stops at the first
    that is wrong. Then it signs the event's bytes and forwards them unchanged. When the server ends (ASGI lifespan), it
    closes `publisher`.
    """

    def __init__(self, publisher: AsyncPublisher, tokens: ReportingTokens) -> None:
        """Raises: ValueError when the two belong to different integrations."""
        if publisher.integration_id != tokens.integration_id:
            raise ValueError("The publisher and the tokens must belong to the same integration.")
        self._publisher: Final = publisher
        self._tokens: Final = tokens
        self._forwarding = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the ASGI server."""
        match scope["type"]:
            case "lifespan":
                await self._handle_lifespan(receive, send)
            case "http":
                await self._handle_request(scope, receive, send)
            case _:
                raise NotImplementedError("Only http is served.")

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._publisher.aclose()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            match scope["path"], scope["method"]:
                case "/v1/events", "POST":
                    status, document = await self._accept_event(scope, receive)
                    await send_document(send, status, document)
                case "/healthz", "GET" | "HEAD":
                    await send_document(send, 200, {"status": "ok"})
                case "/v1/events", _:
                    await refuse(send, RequestRefused(405, "method_not_allowed", allow="POST"))
                case _:
                    await refuse(send, RequestRefused(404, "not_found"))
        except RequestRefused as refused:
            await refuse(send, refused)

    async def _accept_event(self, scope: Scope, receive: Receive) -> tuple[int, dict[str, Any]]:
        self._check_token(scope)
        if read_header(scope, b"content-type").partition(";")[0].strip().lower() != "application/json":
            raise RequestRefused(415, "unsupported_media_type")
        body = await read_body(receive)
        try:
            event_id = check_event(body, self._publisher.integration_id)
            outcome = await self._forward(body)
        except DeliveryFailure as failure:
            raise _make_refusal(failure) from None
        return (201 if outcome == "recorded" else 200), {"event_id": event_id, "status": outcome}

    def _check_token(self, scope: Scope) -> None:
        scheme, _, token = read_header(scope, b"authorization").partition(" ")
        try:
            # Another scheme is treated like an empty token.
            self._tokens.check(token if scheme.lower() == "bearer" else "")
        except SessionRefused as refused:
            # The publisher reads the reason here; the sender does not learn it.
            _log.info("refused a reporting session: %s", refused.refusal)
            raise RequestRefused(401, "unauthenticated", www_authenticate="Bearer") from None

    async def _forward(self, body: bytes) -> str:
        if self._forwarding >= _FORWARDING_MAX:
            raise make_failure("rate_limited", _RETRY_AFTER_S)
        self._forwarding += 1
        try:
            return await self._publisher.forward(body)
        finally:
            self._forwarding -= 1


async def refuse(send: Send, refused: RequestRefused) -> None:
    problem = {"type": "about:blank", "title": refused.code, "status": refused.status, "code": refused.code}
    await send_document(send, refused.status, problem, content_type="application/problem+json", **refused.headers)


def _make_refusal(failure: DeliveryFailure) -> RequestRefused:
    status, code = _ANSWERS[failure.reason]
    if status == 503 or failure.reason in _OF_PUBLISHER:  # noqa: PLR2004 - unavailable
        _log.warning("an event was not forwarded: %s", failure.reason)
    retry_after_s = failure.retry_after_s if failure.retry_after_s is not None else _RETRY_AFTER_S
    headers = {"retry_after": str(math.ceil(retry_after_s))} if status in {429, 503} else {}
    return RequestRefused(status, code, **headers)


def read_header(scope: Scope, name: bytes) -> str:
    """Return the header of this name, or "" if the request has none or several."""
    values = [value for field, value in scope["headers"] if field.lower() == name]
    return values[0].decode("latin-1") if len(values) == 1 else ""


async def read_body(receive: Receive) -> bytes:
    """Return the whole body of the request, within its limits of time and size."""
    body = bytearray()
    try:
        async with asyncio.timeout(_READ_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestRefused(400, "malformed_json")
                body += message.get("body", b"")
                if len(body) > EVENT_BYTES_MAX:
                    raise RequestRefused(413, "payload_too_large")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise RequestRefused(408, "request_timeout") from None


async def send_document(
    send: Send, status: int, document: dict[str, Any], *, content_type: str = "application/json", **headers: str
) -> None:
    body = json.dumps(document).encode()
    fields = {"content-type": content_type, "content-length": str(len(body)), "cache-control": "no-store", **headers}
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})
