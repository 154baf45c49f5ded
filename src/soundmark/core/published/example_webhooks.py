"""Genuine examples of webhook endpoints, deliveries and events."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from soundmark.core.domain.webhooks.delivery import WebhookDelivery
from soundmark.core.domain.webhooks.endpoint import SECRET_PREFIX, Endpoint
from soundmark.core.domain.webhooks.event import WebhookEvent, render_body
from soundmark.core.features.webhooks.endpoints.wire import (
    ReplayedView,
    WebhookDeliveryPage,
    WebhookEndpointPage,
    WebhookMessage,
    delivery_view,
    endpoint_view,
    endpoint_with_secret,
)
from soundmark.kit.crypto.secret import Secret

_AT: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
_LATER: Final = _AT + timedelta(seconds=1)
_EVENT_ID: Final = "evn_Y29kZS1pc3N1ZWQtZXhhbXBs"
# The bytes 0 to 31, or the same the other way round: nobody takes them for a secret.
_SECRET: Final = Secret(SECRET_PREFIX + base64.b64encode(bytes(range(32))).decode())
_ROLLED: Final = Secret(SECRET_PREFIX + base64.b64encode(bytes(reversed(range(32)))).decode())


def example_webhooks(organization_id: str, project_id: str, subject_id: str, xr_id: str) -> dict[str, Any]:
    """Return the example responses by operation."""
    endpoint = Endpoint(
        organization_id=organization_id,
        id="whe_cGxheW91dC1leGFtcGxlLV",
        project_id=None,
        url="https://consumer.example.org/webhooks",
        event_types=("code.issued", "code.revoked"),
        description="The playout system",
        enabled=True,
        disabled_reason=None,
        created_at=_AT,
    )
    delivery = WebhookDelivery(
        organization_id=organization_id,
        id="whd_ZGVsaXZlcnktZXhhbXBsZS",
        endpoint_id=endpoint.id,
        event_id=_EVENT_ID,
        event_type="code.issued",
        status="delivered",
        attempts=1,
        last_status_code=204,
        last_error=None,
        next_attempt_at=None,
        created_at=_LATER,
    )
    event = WebhookEvent(
        organization_id=organization_id,
        id=_EVENT_ID,
        project_id=project_id,
        type="code.issued",
        actor_type="user",
        actor_id=subject_id,
        data=json.dumps({"xr_id": xr_id}),
        created_at=_AT,
    )
    return {
        "create_webhook_endpoint": endpoint_with_secret(endpoint, _SECRET),
        "list_webhook_endpoints": WebhookEndpointPage(data=[endpoint_view(endpoint)], next_cursor=None),
        "get_webhook_endpoint": endpoint_view(endpoint),
        "update_webhook_endpoint": endpoint_view(replace(endpoint, event_types=None)),
        "roll_webhook_secret": endpoint_with_secret(endpoint, _ROLLED),
        "list_webhook_deliveries": WebhookDeliveryPage(data=[delivery_view(delivery)], next_cursor=None),
        "replay_webhook_events": ReplayedView(replayed_count=3),
        "get_webhook_event": WebhookMessage.model_validate_json(render_body(event)),
    }
