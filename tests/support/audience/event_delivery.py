"""Events as a receiver makes them from a resolution, and as a publisher signs and delivers them to Core."""

import hashlib
import hmac
import json
from typing import Any

from soundmark.kit.text.timestamps import format_timestamp
from support.api.core_client import Answer, Api
from support.audience.event_publisher import new_id
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import Tenant


async def make_event(tenant: Tenant, code: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Resolve a measured Code and make the event of its receiver."""
    resolution = (await tenant.api.resolve(code["broadcast_token"])).json
    event = {
        "event_id": new_id("evt_"),
        "integration_id": code["audience_integration_id"],
        "xr_id": resolution["xr_id"],
        "occurred_at": format_timestamp(tenant.api.clock.now()),
        "receiver_class": "phone",
        "measurement_token": new_id("mt_", 32),
        "country": "TN",
        "proof": resolution["measurement_proof"],
        **changes,
    }
    for secret in (event["proof"]["signature"], event["measurement_token"], event["event_id"]):
        remember_secret(secret)
    return event


def sign_body(body: bytes, secret: str) -> str:
    """Return the value of `X-Svc-Signature`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


async def deliver_event(api: Api, event: Any, secret: str, **headers: str) -> Answer:
    """Deliver an event, or these bytes, as a publisher does, which has no credential."""
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    stranger = api.other(token=None, peer="203.0.113.7")
    signed = {"Content-Type": "application/json", "X-Svc-Signature": sign_body(body, secret)}
    return await stranger.post("/v1/events", content=body, headers={**signed, **headers})
