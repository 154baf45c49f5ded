"""Examples of webhook endpoints, deliveries and events."""

import base64
import json
from datetime import timedelta
from typing import Final

from soundmark.core.domain.webhooks.delivery import WebhookDelivery
from soundmark.core.domain.webhooks.endpoint import SECRET_PREFIX, Endpoint
from soundmark.core.domain.webhooks.event import WebhookEvent
from soundmark.core.edge.examples import CODE, ISSUED_AT, MEMBER, ORGANIZATION, PROJECT
from soundmark.kit.crypto.secret import Secret

_EVENT_ID: Final = "evn_Y29kZS1pc3N1ZWQtZXhhbXBs"
# The bytes 0 to 31, or the same the other way round: nobody takes them for a secret.
SECRET: Final = Secret(SECRET_PREFIX + base64.b64encode(bytes(range(32))).decode())
ROTATED: Final = Secret(SECRET_PREFIX + base64.b64encode(bytes(reversed(range(32)))).decode())
ENDPOINT: Final = Endpoint(
    organization_id=ORGANIZATION.id,
    id="whe_cGxheW91dC1leGFtcGxlLV",
    project_id=None,
    url="https://consumer.example.org/webhooks",
    event_types=("code.issued", "code.revoked"),
    description="The playout system",
    enabled=True,
    disabled_reason=None,
    created_at=ISSUED_AT,
)
DELIVERY: Final = WebhookDelivery(
    organization_id=ORGANIZATION.id,
    id="whd_ZGVsaXZlcnktZXhhbXBsZS",
    endpoint_id=ENDPOINT.id,
    event_id=_EVENT_ID,
    event_type="code.issued",
    status="delivered",
    attempts=1,
    last_status_code=204,
    last_error=None,
    next_attempt_at=None,
    created_at=ISSUED_AT + timedelta(seconds=1),
)
EVENT: Final = WebhookEvent(
    organization_id=ORGANIZATION.id,
    id=_EVENT_ID,
    project_id=PROJECT.id,
    type="code.issued",
    actor_type="user",
    actor_id=MEMBER.subject_id,
    data=json.dumps({"xr_id": CODE.xr_id}),
    created_at=ISSUED_AT,
)
