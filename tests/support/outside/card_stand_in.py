"""A stand-in of the card provider that checks what it is sent, and misbehaves on command."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from support.outside.outside_server import Fault, OutsideServer, Received, Reply, running_outside
from support.processes.secret_leaks import remember_secret

CARD_SECRET = "sk_test_MARKsecretOfTheCardProvider"
CUSTOMER = "cus_MARKcustomer"
PORTAL_URL = "https://billing.example.com/p/session/MARKportal"

_SESSION_KEYS = {
    *("mode", "line_items[0][price]", "line_items[0][quantity]", "client_reference_id", "success_url", "cancel_url"),
    *("expires_at", "customer", "customer_email"),
    *(f"metadata[svc_{part}_id]" for part in ("checkout", "organization", "offer")),
    *(f"subscription_data[metadata][svc_{part}_id]" for part in ("checkout", "organization", "offer")),
}

# No log may contain any of these.
for _marker in (CARD_SECRET, CUSTOMER, PORTAL_URL, "cs_test_MARK", "price_MARK"):
    remember_secret(_marker)


@dataclass
class CardStandIn(OutsideServer):
    """The sessions by their id, and the first response to each idempotency key."""

    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, tuple[bytes, Reply]] = field(default_factory=dict)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """The idempotency keys in the order of the requests that had one."""
        return [request.headers["idempotency-key"] for request in self.received if request.method == "POST"]

    def forget(self) -> None:
        super().forget()
        self.sessions.clear()
        self.answers.clear()
        self.objects.clear()

    async def work(self, request: Received, fault: Fault | None) -> Reply:
        self.require(request.headers.get("authorization") == f"Bearer {CARD_SECRET}", "the secret key")
        self.require(request.headers.get("stripe-version") == "2025-03-31.basil", "the version")
        self.require("x-stripe-client-telemetry" not in request.headers, "telemetry")
        self.require("telemetry_id" not in request.headers.get("x-stripe-client-user-agent", ""), "a telemetry id")
        if request.method == "GET":
            return self._find(request, fault)
        key = request.headers.get("idempotency-key", "")
        self.require(16 <= len(key) <= 255, "an idempotency key")
        self.require(request.headers.get("content-type") == "application/x-www-form-urlencoded", "a form")
        if key in self.answers:
            params, answer = self.answers[key]
            if params != request.body:
                return Reply({"error": {"type": "idempotency_error", "message": f"Keys … {key}"}}, 400)
            return answer
        answer = self._create(request, fault)
        self.answers[key] = (request.body, answer)
        return answer

    def _create(self, request: Received, fault: Fault | None) -> Reply:
        if fault in {"stored_500", "slow_500"}:
            return Reply({"error": {"type": "api_error", "message": "MARK"}}, 500)
        params = dict(parse_qsl(request.body.decode()))
        if params.get("customer", CUSTOMER) != CUSTOMER:
            missing = {"type": "invalid_request_error", "code": "resource_missing", "param": "customer"}
            return Reply({"error": {**missing, "message": f"No such customer: {params['customer']}"}}, 400)
        if request.path == "/v1/checkout/sessions":
            return Reply(self._open(params, fault))
        if request.path == "/v1/billing_portal/sessions":
            self.require(params.keys() == {"customer", "return_url"}, "the portal's parameters")
            url = "ftp://example.com/portal" if fault == "wrong_object" else PORTAL_URL
            return Reply({"id": "bps_1", "object": "billing_portal.session", "url": url, "livemode": False})
        session = self.sessions.get(request.path.split("/")[4])
        self.require(request.path.endswith("/expire"), "a known route")
        if session is None:
            return Reply({"error": {"type": "invalid_request_error", "message": "No such checkout.session"}}, 404)
        session.update(status="expired", url=None)
        return Reply(session)

    def _open(self, params: dict[str, str], fault: Fault | None) -> dict[str, Any]:
        self.require(params.keys() <= _SESSION_KEYS, f"known parameters: {params.keys() - _SESSION_KEYS}")
        self.require(params.get("mode") == "subscription", "the mode")
        self.require(params.get("line_items[0][quantity]") == "1", "one of the price")
        self.require(not {"customer", "customer_email"} <= params.keys(), "customer or customer_email")
        identity = f"cs_test_MARK{len(self.sessions)}"
        session = {
            "id": identity,
            "object": "checkout.session",
            "status": "open",
            "payment_status": "unpaid",
            "mode": "subscription",
            "client_reference_id": params["client_reference_id"],
            "customer": params.get("customer"),
            "subscription": None,
            "metadata": {key[9:-1]: value for key, value in params.items() if key.startswith("metadata[")},
            # Real pages have a fragment.
            "url": f"https://checkout.example.com/c/pay/{identity}#fidMARK",
            "expires_at": int(params["expires_at"]),
        }
        self.sessions[identity] = session
        if fault == "wrong_object":
            return {**session, "client_reference_id": "bco_somebodyElses"}
        return {**session, "metadata": ["MARK"]} if fault == "wrong_types" else session

    def _find(self, request: Received, fault: Fault | None) -> Reply:
        if fault == "stored_500":
            return Reply({"error": {"type": "api_error"}}, 500)
        if request.path == "/v1/events" and "/v1/events" in self.objects:
            return Reply(self.objects[request.path])
        identity = request.path.rpartition("/")[2]
        found = self.sessions.get(identity) or self.objects.get(identity)
        if found is None:
            return Reply({"error": {"type": "invalid_request_error", "message": f"No such object: {identity}"}}, 404)
        return Reply(found)


@contextlib.asynccontextmanager
async def running_card(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[CardStandIn]:
    """Run a stand-in on a loopback port, over TLS if there is a context for it."""
    card = CardStandIn()
    async with running_outside(card, card.work, tls=tls):
        yield card
