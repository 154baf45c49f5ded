"""The reference library of Standard Webhooks, with which consumers verify, accepts what Core signs."""

import base64
import json
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from soundmark.core.domain.webhooks.attempt import sign
from soundmark.core.domain.webhooks.endpoint import SECRET_PREFIX
from soundmark.core.domain.webhooks.event import WebhookEvent, render_body
from soundmark.kit.crypto.secret import Secret

SECRET, NEW_SECRET, OTHER_SECRET = (
    Secret(SECRET_PREFIX + base64.b64encode(bytes([first]) * 32).decode()) for first in (1, 2, 3)
)
EVENT = WebhookEvent(
    organization_id="org_1",
    id="evn_1",
    project_id=None,
    type="campaign.stopped",
    actor_type="user",
    actor_id="ärger",
    data=json.dumps({"campaign_id": "cmp_1", "revoked_count": 3}),
    created_at=datetime(2026, 11, 20, 10, tzinfo=UTC),
)


def sign_now(*secrets: Secret) -> tuple[bytes, dict[str, str]]:
    body, unix_s = render_body(EVENT), int(datetime.now(UTC).timestamp())
    signature = sign(secrets, EVENT.id, unix_s, body)
    return body, {"webhook-id": EVENT.id, "webhook-timestamp": str(unix_s), "webhook-signature": signature}


def test_it_accepts_a_message_and_reads_the_event() -> None:
    body, headers = sign_now(SECRET)
    message = Webhook(SECRET.reveal()).verify(body, headers)
    assert (message["type"], message["timestamp"]) == ("campaign.stopped", "2026-11-20T10:00:00.000Z")
    assert message["data"]["actor"] == {"type": "user", "id": "ärger"}


def test_while_a_secret_is_rolled_it_accepts_either_and_no_other() -> None:
    body, headers = sign_now(NEW_SECRET, SECRET)
    for secret in (SECRET, NEW_SECRET):
        assert Webhook(secret.reveal()).verify(body, headers)["data"]["campaign_id"] == "cmp_1"
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER_SECRET.reveal()).verify(body, headers)
