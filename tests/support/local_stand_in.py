"""A stand-in of the local provider that checks what it is sent, and misbehaves on command."""

import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from support.outside_server import Fault, OutsideServer, Received, Reply, running_outside
from support.secret_leaks import remember_secret

PUBLIC_KEY = "public-MARK-key"
PRIVATE_KEY = "private-MARK-key"

_MEMBERS = {"amount", "success_link", "fail_link", "webhook", "developer_tracking_id"}

# No log may contain any of these.
for _marker in (PUBLIC_KEY, PRIVATE_KEY, "MARKpayment", "mark.payer@example.org"):
    remember_secret(_marker)


@dataclass
class LocalStandIn(OutsideServer):
    """The payments by their id; `changes` are merged into the result of each response."""

    payments: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)

    def forget(self) -> None:
        super().forget()
        self.payments.clear()
        self.changes.clear()

    async def work(self, request: Received, fault: Fault | None) -> Reply:
        self.require(request.headers.get("authorization") == f"Bearer {PUBLIC_KEY}:{PRIVATE_KEY}", "the keys")
        if fault == "stored_500":
            return Reply({"result": {"error": "MARK"}}, 500)
        if request.method == "POST":
            return self._generate(request, fault)
        payment = self.payments.get(request.path.removeprefix("/api/v2/verify_payment/"))
        if payment is None:
            return Reply({"success": False, "result": {"message": "not found"}}, 404)
        return Reply(_envelope({**payment, **self.changes}))

    def _generate(self, request: Received, fault: Fault | None) -> Reply:
        self.require(request.path == "/api/v2/generate_payment", "a known route")
        self.require(request.headers.get("content-type") == "application/json", "JSON")
        sent = json.loads(request.body)
        self.require(sent.keys() == _MEMBERS, "the members")
        self.require(type(sent["amount"]) is int, "millimes as an integer")
        identity = f"MARKpayment{len(self.payments):011}"
        self.payments[identity] = {
            "type": "card",
            "amount": sent["amount"],
            "status": "PENDING",
            "developer_tracking_id": sent["developer_tracking_id"],
            "details": {"name": "MARK Payer", "email": "mark.payer@example.org"},
            "sent": sent,
        }
        result = {
            "success": True,
            "payment_id": identity,
            "link": f"https://pay.example.com/pay/{identity}",
            "developer_tracking_id": sent["developer_tracking_id"],
            **self.changes,
        }
        if fault == "wrong_object":
            return Reply({"result": {"success": False}})
        return Reply(_envelope({**result, "link": 7} if fault == "wrong_types" else result))


def _envelope(result: dict[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in result.items() if name != "sent"}
    return {"success": True, "result": shown, "name": "developers", "code": 0, "version": "v2"}


@contextlib.asynccontextmanager
async def running_local(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[LocalStandIn]:
    """Run a stand-in on a loopback port, over TLS if there is a context for it."""
    local = LocalStandIn()
    async with running_outside(local, local.work, tls=tls):
        yield local
