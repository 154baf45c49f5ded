"""`POST /v1/events`, for publishers that can only reach Core. Audience judges exactly the bytes that arrived."""

import re
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import ClientDigest, Ctx, RefusedEvents, RequestId
from soundmark.core.features.audience.events.service import find_audience_of_event
from soundmark.core.problems import AudienceUnavailable
from soundmark.kit.http.requests.bodies import read_body
from soundmark.kit.http.requests.closed_query import query_faults
from soundmark.kit.http.responses.problems import MalformedBody, RateLimited, Unauthenticated, UnsupportedMediaType
from soundmark.wire.audience_event import EVENT_MAX_BYTES, SIGNATURE_HEADER, EventAnswer
from soundmark.wire.private.measurements import EVENT_STATUSES
from soundmark.wire.private.problems import (
    EntitlementRequired,
    EventConflict,
    EventQuotaExceeded,
    IntegrationRevoked,
    OrganizationSuspended,
    ProofInvalid,
    ProofReplayed,
)

operations = Operations("Audience")

_JSON: Final = "application/json"
_SIGNATURE: Final = "^sha256=[0-9A-Fa-f]{64}$"
_BODY: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": SIGNATURE_HEADER,
            "in": "header",
            "required": True,
            "description": "HMAC-SHA-256 of the raw body under the integration's secret.",
            "schema": {"type": "string", "pattern": _SIGNATURE},
        }
    ],
    "requestBody": {
        "required": True,
        "description": "At most 16 KiB.",
        "content": {_JSON: {"schema": {"$ref": "#/components/schemas/AudienceEvent"}}},
    },
}


_OPERATION: Final = Operation(
    None,
    problems=(
        Unauthenticated,
        IntegrationRevoked,
        OrganizationSuspended,
        EntitlementRequired,
        EventConflict,
        ProofReplayed,
        ProofInvalid,
        EventQuotaExceeded,
        AudienceUnavailable,
        RateLimited,
    ),
    note="the publisher signs the body under the integration's secret (`X-Svc-Signature`)",
    # Audience judges the query string, after the publisher's signature.
    has_open_query=True,
)


@operations.add(
    "POST",
    "/v1/events",
    _OPERATION,
    status=HTTPStatus.CREATED,
    response_model=EventAnswer,
    responses={
        200: {
            "model": EventAnswer,
            "description": "A duplicate: an exact replay, or a Code and token that have already been counted that day.",
        }
    },
    openapi_extra=_BODY,
    example={
        201: EventAnswer(event_id="evt_b25lLXNvdW5kLWhlYXJkLW", status="recorded"),
        200: EventAnswer(event_id="evt_b25lLXNvdW5kLWhlYXJkLW", status="duplicate"),
    },
)
async def deliver_event(
    request: Request, ctx: Ctx, request_id: RequestId, client: ClientDigest, refused: RefusedEvents
) -> Response:
    """Deliver one Audience event, signed by the publisher's backend.

    A retry must send the same bytes. If the event was already stored, the response is `duplicate`, and the event is not
    counted again.
    """
    await refused.check(client)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaType
    body = await read_body(request, EVENT_MAX_BYTES)
    # Without the type's parameters: nothing depends on them, and our client might refuse to send them.
    headers = {"content-type": _JSON}
    signatures = request.headers.getlist(SIGNATURE_HEADER)
    # Several signatures count as none, and so does a malformed one.
    if len(signatures) == 1 and re.fullmatch(_SIGNATURE, signatures[0]):
        headers[SIGNATURE_HEADER] = signatures[0]
    unknown = [fault.pointer[1:] for fault in query_faults(request.scope["query_string"], ())]
    try:
        audience = await find_audience_of_event(ctx, body)
        event = await audience.forward_event(body, headers, unknown_parameters=unknown, request_id=request_id)
    except (MalformedBody, Unauthenticated):
        # The sender has not shown that it is the publisher.
        await refused.count(client)
        raise
    return JSONResponse(event.model_dump(), EVENT_STATUSES[event.status])
