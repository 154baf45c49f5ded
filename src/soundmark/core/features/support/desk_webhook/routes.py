"""The webhook of the support desk."""

from typing import Any, Final, Literal, TypeAlias

from prometheus_client import Counter
from starlette.requests import Request

from soundmark.core.context import RequestContext
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx
from soundmark.core.edge.refusals import invalid
from soundmark.core.features.support.desk_webhook.service import DeskOutcome, receive_notice
from soundmark.core.providers.freescout.webhooks import (
    DELIVERY_HEADER,
    NATIVE_EVENT_HEADER,
    NATIVE_SIGNATURE_HEADER,
    SIGNATURE_HEADER,
    digest_delivery,
    digest_native_delivery,
    is_delivery_id,
    is_natively_signed,
    is_signed,
    read_notice,
)
from soundmark.kit.crypto.secret import split_secrets
from soundmark.kit.http.requests.bodies import SIGNED_BODY, media_type_of, parse_body, read_body
from soundmark.kit.http.responses.problems import Unauthenticated, UnsupportedMediaType
from soundmark.settings.registry import SupportSettings
from soundmark.wire.shape import Wire


class DeskAnswer(Wire):
    """What became of a delivery of the desk."""

    status: Literal["processed", "duplicate", "ignored"]


CountedOutcome: TypeAlias = DeskOutcome | Literal["unauthenticated"]

_OUTCOMES: Final[tuple[CountedOutcome, ...]] = ("processed", "duplicate", "ignored", "unauthenticated")
_deliveries: Final = Counter(
    "soundmark_desk_deliveries_total", "Deliveries of the support desk, by outcome.", ["outcome"]
)
for _outcome in _OUTCOMES:
    _deliveries.labels(_outcome)  # Exported as zero from the start.


def count_delivery(outcome: CountedOutcome) -> None:
    """Count one delivery."""
    _deliveries.labels(outcome).inc()


operations = Operations("Support")

_JSON: Final = "application/json"
_DELIVERY: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": SIGNATURE_HEADER,
            "in": "header",
            "required": True,
            "description": "The HMAC-SHA-256 of the raw body under the webhook secret, in base64 or hexadecimal.",
            "schema": {"type": "string"},
        },
        {
            "name": DELIVERY_HEADER,
            "in": "header",
            "required": True,
            "description": "The id of the delivery, the same each time it is repeated.",
            "schema": {"type": "string", "pattern": "^[ -~]{1,128}$"},
        },
    ],
    "requestBody": {
        "required": True,
        "description": "At most 1,024 KiB.",
        "content": {_JSON: {"schema": {"type": "object", "description": "The desk's conversation."}}},
    },
}
_OPERATION: Final = Operation(
    None,
    problems=(Unauthenticated,),
    note=f"the support desk signs the body under the webhook secret (`{SIGNATURE_HEADER}`)",
    has_open_query=True,
)


@operations.add(
    "POST", "/v1/support/webhooks/desk", _OPERATION, openapi_extra=_DELIVERY, example=DeskAnswer(status="processed")
)
async def receive_desk_delivery(request: Request, ctx: Ctx) -> DeskAnswer:
    """Receive a change of a conversation from the support desk.

    Only the conversation's id, status and time, and the ticket that it names, are read. With
    `SOUNDMARK_SUPPORT_NATIVE_SIGNATURE`, a stock desk's own signature is taken in place of these headers.
    """
    body = await _read_signed_body(request, ctx)
    digest = _read_delivery(request, ctx, body)
    if media_type_of(request) != _JSON:
        raise UnsupportedMediaType
    notice = read_notice((await parse_body(body, SIGNED_BODY, ())).value)
    outcome = "ignored" if notice is None else await receive_notice(ctx, notice, delivery_digest=digest)
    count_delivery(outcome)
    return DeskAnswer(status=outcome)


async def _read_signed_body(request: Request, ctx: RequestContext) -> bytes:
    """Return the body if the desk signed it.

    Raises: Unauthenticated; PayloadTooLarge.
    """
    is_native = ctx.support_native_signature
    headers = request.headers.getlist(NATIVE_SIGNATURE_HEADER if is_native else SIGNATURE_HEADER)
    configured = (await ctx.platform_settings.read(SupportSettings)).support_webhook_secret
    # Several signature headers count as none.
    if len(headers) == 1 and configured is not None:
        body = await read_body(request, SIGNED_BODY.bytes_max)
        judge = is_natively_signed if is_native else is_signed
        if judge(body, headers[0], split_secrets(configured)):
            return body
    count_delivery("unauthenticated")
    raise Unauthenticated


def _read_delivery(request: Request, ctx: RequestContext, body: bytes) -> bytes:
    """Return the digest by which the delivery is recognised.

    Raises: ValidationFailed for a delivery id that is missing or malformed.
    """
    if ctx.support_native_signature:
        return digest_native_delivery(request.headers.get(NATIVE_EVENT_HEADER, ""), body)
    given = request.headers.getlist(DELIVERY_HEADER)
    if len(given) != 1 or not is_delivery_id(given[0]):
        raise invalid("header", DELIVERY_HEADER, "must be given once, with 1 to 128 printable ASCII characters")
    return digest_delivery(given[0])
