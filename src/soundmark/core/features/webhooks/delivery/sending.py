"""One attempt: the message, its signatures and the request."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.attempt import TIMEOUT_S, ClaimedDelivery, sign
from soundmark.core.domain.webhooks.event import WebhookEvent, render_body
from soundmark.core.steps.webhook_secrets import SealedSecrets, open_secrets
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.guarded_client import NotSent
from soundmark.kit.tracing.context import PARENT_HEADER, find_traceparent
from soundmark.kit.tracing.spans import enter_child

_USER_AGENT: Final = "Soundmark-Webhooks"


async def attempt(ctx: Context, delivery: ClaimedDelivery) -> int | str:
    """Send a delivery's message to its endpoint; return the status of the response, or why there was none.

    It is signed with the secrets that the endpoint had when the delivery was claimed for this attempt.

    Raises: kit.crypto.sealing.SealBroken.
    """
    sealed = SealedSecrets(
        delivery.endpoint_id, delivery.sealed_secret, delivery.sealed_earlier_secret, delivery.earlier_secret_until
    )
    return await send(ctx, delivery.url, delivery.event, sealed)


async def send(ctx: Context, url: str, event: WebhookEvent, sealed: SealedSecrets) -> int | str:
    """Send an event's message; return the status of the response, or why there was none.

    Raises: kit.crypto.sealing.SealBroken.
    """
    now = ctx.clock.now()
    body = render_body(event)
    headers = make_headers(open_secrets(ctx.sealer, sealed, now=now), event.id, body, now=now)
    with enter_child(
        "POST webhook", "client", {"http.request.method": "POST", "soundmark.event_id": event.id}
    ) as place:
        # Without `tracestate`, which may say something about our systems that is not for everybody.
        if traceparent := find_traceparent():
            headers[PARENT_HEADER] = traceparent
        try:
            status = await ctx.webhooks.post(url, headers, body, timeout_s=TIMEOUT_S)
        except NotSent as failed:
            place.note({}, error=failed.reason)
            return failed.reason
        place.note({"http.response.status_code": status})
        return status


def make_headers(secrets: Sequence[Secret], event_id: str, body: bytes, *, now: datetime) -> dict[str, str]:
    """Return the headers of an attempt at `now`.

    Source: Standard Webhooks 1.1.0, "Webhook headers".
    """
    timestamp_s = int(now.timestamp())
    return {
        "content-type": "application/json",
        "user-agent": _USER_AGENT,
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": sign(secrets, event_id, timestamp_s, body),
    }
