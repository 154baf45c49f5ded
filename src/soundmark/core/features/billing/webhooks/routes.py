"""The webhooks of the payment providers."""

import hashlib
from collections.abc import Awaitable
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Path
from prometheus_client import Counter
from starlette.requests import Request

from soundmark.core.context import RequestContext
from soundmark.core.domain.billing.catalog import ProviderName
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import ClientDigest, Ctx
from soundmark.core.features.billing.webhooks.card_events import CardOutcome, receive_event
from soundmark.core.features.billing.webhooks.local_notification import MEMBERS, find_payment_ids
from soundmark.core.features.billing.webhooks.local_notifications import receive_notification
from soundmark.core.problems import CheckoutNotFound, PaymentNotVerified, PaymentProviderUnavailable
from soundmark.core.providers.stripe.webhooks import SIGNATURE_HEADER, is_signed, read_event
from soundmark.kit.crypto.secret import split_secrets
from soundmark.kit.http.requests.bodies import LARGE_BODY, SIGNED_BODY, media_type_of, parse_body, read_body
from soundmark.kit.http.responses.problems import (
    MalformedBody,
    Problem,
    RateLimited,
    Unauthenticated,
    UnsupportedMediaType,
    ValidationFailed,
)
from soundmark.settings.registry import CardSettings
from soundmark.wire.shape import Wire


class WebhookAnswer(Wire):
    """What became of a notification. `pending`: it is judged again, by the next one or by ourselves."""

    status: Literal["processed", "pending", "ignored"]


NotificationOutcome: TypeAlias = Literal[
    "processed",
    "pending",
    "ignored",
    "repeated",
    "unauthenticated",
    "unknown",
    "limited",
    "not_verified",
    "unavailable",
]

_OUTCOMES: Final[dict[ProviderName, tuple[NotificationOutcome, ...]]] = {
    "card": ("processed", "pending", "ignored", "repeated", "unauthenticated", "unavailable"),
    "local": ("processed", "pending", "ignored", "repeated", "unknown", "limited", "not_verified", "unavailable"),
}
_notifications: Final = Counter(
    "soundmark_payment_notifications_total", "Notifications of payment providers, by outcome.", ["provider", "outcome"]
)
for _provider, _known in _OUTCOMES.items():
    for _outcome in _known:
        _notifications.labels(_provider, _outcome)  # Exported as zero from the start.


def count_notification(provider: ProviderName, outcome: NotificationOutcome) -> None:
    """Count one notification."""
    assert outcome in _OUTCOMES[provider], "every outcome is exported from the start"
    _notifications.labels(provider, outcome).inc()


operations = Operations("Payment webhooks")

_PROCESSED: Final = WebhookAnswer(status="processed")

_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"
_CARD: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": SIGNATURE_HEADER,
            "in": "header",
            "required": True,
            "description": "The provider's signature of the raw body: `t=…,v1=…`.",
            "schema": {"type": "string"},
        }
    ],
    "requestBody": {
        "required": True,
        "description": "At most 1,024 KiB.",
        "content": {_JSON: {"schema": {"type": "object", "description": "The provider's event."}}},
    },
}
_PAYMENT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"payment_id": {"type": "string", "pattern": "^[A-Za-z0-9_-]{6,100}$"}},
}
_IN_QUERY: Final[dict[str, Any]] = {
    "name": "payment_id",
    "in": "query",
    "required": False,
    "description": "The payment's id, which may be in the body instead.",
    "schema": {"type": "string"},
}
_LOCAL_QUERY: Final[dict[str, Any]] = {"parameters": [_IN_QUERY]}
_LOCAL: Final[dict[str, Any]] = {
    **_LOCAL_QUERY,
    "requestBody": {
        "required": False,
        "description": "At most 1,024 KiB.",
        "content": {_FORM: {"schema": _PAYMENT}, _JSON: {"schema": _PAYMENT}},
    },
}
_REFUSED: Final[dict[type[Problem], NotificationOutcome]] = {
    CheckoutNotFound: "unknown",
    RateLimited: "limited",
    PaymentNotVerified: "not_verified",
    PaymentProviderUnavailable: "unavailable",
}
_CARD_OPERATION: Final = Operation(
    None,
    problems=(Unauthenticated, PaymentProviderUnavailable),
    note=f"the card provider signs the body under the webhook secret (`{SIGNATURE_HEADER}`)",
    has_open_query=True,
    unanswered=(ValidationFailed,),
)
_LOCAL_OPERATION: Final = Operation(
    None,
    problems=(CheckoutNotFound, RateLimited, PaymentNotVerified, PaymentProviderUnavailable),
    note="the payment is verified with the local provider",
    has_open_query=True,
    # A notification that cannot be read names no payment, so it is answered like one of an unknown payment.
    unanswered=(MalformedBody, UnsupportedMediaType, ValidationFailed),
)

WebhookSecret = Annotated[str, Path(description="The secret of one checkout, which only the provider is given.")]


@operations.add("POST", "/v1/billing/webhooks/card", _CARD_OPERATION, openapi_extra=_CARD, example=_PROCESSED)
async def receive_card_event(request: Request, ctx: Ctx) -> WebhookAnswer:
    """Receive an event of the card provider.

    It is a trigger: what is granted is what the provider says when it is asked. An event that was processed is answered
    without asking.
    """
    body = await _read_signed_body(request, ctx)
    if media_type_of(request) != _JSON:
        raise UnsupportedMediaType
    event = read_event((await parse_body(body, SIGNED_BODY, ())).value)
    if event is None:
        count_notification("card", "ignored")
        return WebhookAnswer(status="ignored")
    return await _count("card", receive_event(ctx, event, body_digest=hashlib.sha256(body).digest()))


@operations.add("POST", "/v1/billing/webhooks/local", _LOCAL_OPERATION, openapi_extra=_LOCAL, example=_PROCESSED)
async def receive_local_notification(request: Request, ctx: Ctx, client: ClientDigest) -> WebhookAnswer:
    """Receive a notification of the local provider.

    Only a payment's id is taken from it. The payment is verified with the provider before anything is granted, unless
    that was done before. One that the provider has called unpaid in the last ten seconds is `pending` without being
    verified; a job verifies it once they are over.
    """
    return await _receive_local(request, ctx, client, None)


@operations.add("GET", "/v1/billing/webhooks/local", _LOCAL_OPERATION, openapi_extra=_LOCAL_QUERY, example=_PROCESSED)
async def receive_local_query(request: Request, ctx: Ctx, client: ClientDigest) -> WebhookAnswer:
    """Receive a notification of the local provider in a query, the way in which it really sends them."""
    return await _receive_local(request, ctx, client, None)


@operations.add(
    "POST", "/v1/billing/webhooks/local/{secret}", _LOCAL_OPERATION, openapi_extra=_LOCAL, example=_PROCESSED
)
async def receive_checkout_notification(
    request: Request, ctx: Ctx, client: ClientDigest, secret: WebhookSecret
) -> WebhookAnswer:
    """Receive a notification of the local provider at the address that it was given for one checkout."""
    return await _receive_local(request, ctx, client, secret)


@operations.add(
    "GET", "/v1/billing/webhooks/local/{secret}", _LOCAL_OPERATION, openapi_extra=_LOCAL_QUERY, example=_PROCESSED
)
async def receive_checkout_query(
    request: Request, ctx: Ctx, client: ClientDigest, secret: WebhookSecret
) -> WebhookAnswer:
    """Receive a notification in a query at the address that the local provider was given for one checkout."""
    return await _receive_local(request, ctx, client, secret)


async def _read_signed_body(request: Request, ctx: RequestContext) -> bytes:
    """Return the body if the card provider signed it.

    Raises: Unauthenticated; PayloadTooLarge.
    """
    headers = request.headers.getlist(SIGNATURE_HEADER)
    configured = (await ctx.platform_settings.read(CardSettings)).card_webhook_secret
    # Several signature headers count as none.
    if len(headers) == 1 and configured is not None:
        body = await read_body(request, SIGNED_BODY.bytes_max)
        if is_signed(body, headers[0], split_secrets(configured), now_s=ctx.clock.unix_s()):
            return body
    count_notification("card", "unauthenticated")
    raise Unauthenticated


async def _receive_local(request: Request, ctx: RequestContext, client: bytes, secret: str | None) -> WebhookAnswer:
    body = b"" if request.method == "GET" else await read_body(request, LARGE_BODY.bytes_max)
    payment_ids = await _find_payment_ids(request, body)
    digest = hashlib.sha256(body).digest()
    return await _count(
        "local", receive_notification(ctx, payment_ids, secret=secret, client=client, body_digest=digest)
    )


async def _count(provider: ProviderName, receiving: Awaitable[CardOutcome]) -> WebhookAnswer:
    """Count the outcome of a notification, and answer it."""
    try:
        outcome = await receiving
    except tuple(_REFUSED) as problem:
        count_notification(provider, _REFUSED[type(problem)])
        raise
    count_notification(provider, outcome)
    return WebhookAnswer(status="processed" if outcome == "repeated" else outcome)


async def _find_payment_ids(request: Request, body: bytes) -> list[str]:
    """Return the ids that a notification may mean. One that cannot be read has none."""
    media_type = media_type_of(request)
    json: Any = None
    if media_type == _JSON:
        try:
            json = (await parse_body(body, LARGE_BODY, MEMBERS)).value
        except MalformedBody:
            json = None
    form = body if media_type == _FORM else b""
    return find_payment_ids(request.scope["query_string"], form, json)
