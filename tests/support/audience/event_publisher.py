"""Proofs as Core signs them, events as receivers make them, and deliveries as publishers send them.

The library makes the canonical bytes, not the server's own code.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import rfc8785

from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp
from support.api.core_client import Answer
from support.audience.client import AudienceApi, AudienceIntegration
from support.database.rival import Rival
from support.processes.secret_leaks import remember_secret

CORE = SigningKey.from_seed("sig_Y29yZS1rZXktb2YtdGVzdH", bytes(range(7, 39)))
NEXT_CORE = SigningKey.from_seed("sig_bmV4dC1jb3JlLWtleS1vZi", bytes(range(8, 40)))
STRANGER = SigningKey.from_seed("sig_c3RyYW5nZXItb2YtdGVzdH", bytes(range(9, 41)))


def core_key_body(key: SigningKey) -> dict[str, str]:
    """Return a key in the form in which Core sends it to Audience."""
    return {"key_id": key.key_id, "public_key": base64url.encode(key.public_key)}


def new_id(prefix: str, size: int = 16) -> str:
    """Return a new id; 16 bytes make 22 characters."""
    return prefix + secrets.token_urlsafe(size)


def sign_proof(key: SigningKey, facts: dict[str, Any]) -> dict[str, Any]:
    """Return `facts` as a proof that `key` signed."""
    return {**facts, "signature": base64url.encode(key.sign(rfc8785.dumps(facts)))}


@dataclass
class Publisher:
    """A publisher's backend with one integration, and a receiver that resolves one Code."""

    integration: AudienceIntegration
    key: SigningKey = CORE
    xr_id: str = field(default_factory=lambda: new_id("xr_"))
    campaign_id: str | None = None

    @property
    def api(self) -> AudienceApi:
        return self.integration.api

    def now(self) -> datetime:
        return self.api.clock.now()

    def proof(self, *, key: SigningKey | None = None, without: str = "", **changes: Any) -> dict[str, Any]:
        """Return a genuine proof of this moment, except for `changes`, which are signed like the rest."""
        key, now = key or self.key, self.now()
        facts: dict[str, Any] = {
            "proof_id": new_id("prf_"),
            "xr_id": self.xr_id,
            "integration_id": self.integration.id,
            "campaign_id": self.campaign_id,
            "issued_at": format_timestamp(now),
            "expires_at": format_timestamp(now + timedelta(minutes=5)),
            "key_id": key.key_id,
            **changes,
        }
        facts.pop(without, None)
        return sign_proof(key, facts)

    def event(self, **changes: Any) -> dict[str, Any]:
        """Return a genuine event of this moment, except for `changes`."""
        event = {
            "event_id": new_id("evt_"),
            "integration_id": self.integration.id,
            "xr_id": self.xr_id,
            "occurred_at": format_timestamp(self.now()),
            "receiver_class": "phone",
            "measurement_token": new_id("mt_", 32),
            "country": "TN",
            "proof": changes.get("proof") or self.proof(),
            **changes,
        }
        # No token, event id or proof may stand in any log.
        for secret in (event["event_id"], event["measurement_token"], event["proof"]):
            if isinstance(secret, str):
                remember_secret(secret)
        if isinstance(event["proof"], dict):
            remember_secret(str(event["proof"].get("signature", "")))
            remember_secret(str(event["proof"].get("proof_id", "")))
        return event

    def signature(self, body: bytes, secret: str | None = None) -> str:
        key = (secret or self.integration.hmac_secret).encode()
        return "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()

    async def deliver(self, event: Any = None, *, api: AudienceApi | None = None, **headers: str) -> Answer:
        """Sign and deliver an event, or these bytes."""
        body = event if isinstance(event, bytes) else json.dumps(self.event() if event is None else event).encode()
        sent = {"Content-Type": "application/json", "X-Svc-Signature": self.signature(body), **headers}
        stranger = AudienceApi((api or self.api).app, self.api.clock, credential=None)
        return await stranger.call("POST", "/v1/events", content=body, headers=sent)


async def make_publisher(api: AudienceApi, **changes: Any) -> Publisher:
    """Create a publisher with a demo integration, except for `changes`, that trusts `CORE`."""
    given = await api.make_integration(**{"core_key": core_key_body(CORE), **changes})
    remember_secret(given.hmac_secret)
    return Publisher(given)


async def cut_ingestion_connection(rival: Rival) -> int:
    """Cut the connections that Audience stores events on, as a restart of the database would; return how many."""
    return await rival.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'soundmark-audience-hot'"
    )


async def deliver_messages(
    api: AudienceApi, messages: Iterable[Mapping[str, Any]], *headers: tuple[bytes, bytes]
) -> list[Mapping[str, Any]]:
    """Deliver an event as these ASGI messages, one after the other as they are asked for; return what is answered."""
    waiting = iter(messages)
    sent: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        return next(waiting)

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    head = [(b"content-type", b"application/json"), *headers]
    scope = {"type": "http", "method": "POST", "path": "/v1/events", "query_string": b"", "headers": head}
    await api.app(scope, receive, send)  # type: ignore[arg-type]  # the protocol's loose dicts
    return sent
