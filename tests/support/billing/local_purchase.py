"""A purchase through the local provider: its checkout's row, its payment, and the notifications of it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from support.api.core_client import Answer, Api
from support.billing.offers import AMOUNT_MINOR, LOCAL_OFFER, make_local_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/webhooks/local"
PUBLIC_KEY = "public-MARK-key"
PRIVATE_KEY = "private-MARK-key"
_numbers: Iterator[int] = count(1)

# No log may contain any of these.
for _marker in ("MARKpaid", "mark.payer@example.org", "payer@sandbox.example"):
    remember_secret(_marker)


@dataclass(frozen=True)
class LocalPurchase:
    """A checkout of ours, the id of its payment, and the secret in the address of its notifications."""

    organization_id: str
    checkout_id: str
    payment_id: str
    secret: str
    began_at: datetime

    @property
    def path(self) -> str:
        return f"{PATH}/{self.secret}"


async def begin_local_purchase(
    tenant: Tenant, rival: Rival, local: RunningSandbox, *, status: str = "SUCCESS", **changes: Any
) -> LocalPurchase:
    """Begin a checkout as `POST /v1/billing/checkouts` would; the provider has its payment with this status."""
    purchase = await insert_local_checkout(tenant, rival)
    await add_payment(local, purchase.payment_id, purchase.checkout_id, status=status, **changes)
    return purchase


async def add_payment(
    local: RunningSandbox, payment_id: str, tracking_id: str, *, status: str = "SUCCESS", **changes: Any
) -> None:
    """Let the provider have a payment; `changes` take the place of members of its answer."""
    details = {"name": "MARK Payer", "email": "mark.payer@example.org", "pan": "4242********MARK"}
    await local.control(
        "/local/payments",
        id=payment_id,
        amount=AMOUNT_MINOR,
        tracking_id=tracking_id,
        status=status,
        answer={"details": details, **changes},
    )


async def set_payment(local: RunningSandbox, payment_id: str, **fields: Any) -> None:
    """Change the `status` or the `answer` of a payment, of which the provider does not notify."""
    await local.control(f"/local/payments/{payment_id}", notify=False, **fields)


async def list_payments(local: RunningSandbox) -> list[dict[str, Any]]:
    """Return what was ordered at the provider, the newest first."""
    payments: list[dict[str, Any]] = (await local.look("local"))["payments"]
    return payments


async def insert_local_checkout(tenant: Tenant, rival: Rival, **changes: Any) -> LocalPurchase:
    """Write the rows of a checkout that is pending and has its page."""
    await make_local_offer(rival)
    number = next(_numbers)
    began_at = tenant.api.clock.now().replace(microsecond=0)
    purchase = LocalPurchase(
        tenant.organization_id,
        f"bco_locally{number:015}",
        f"MARKpaid{number:014}",
        f"MARKsecret{number:033}",
        began_at,
    )
    row = {
        "organization_id": tenant.organization_id,
        "id": purchase.checkout_id,
        "offer_id": LOCAL_OFFER,
        "plan_id": "plan_codes_studio",
        "product": "codes",
        "provider": "local",
        "status": "pending",
        "amount_minor": AMOUNT_MINOR,
        "currency": "TND",
        "entitlement_months": 12,
        "provider_reference": purchase.payment_id,
        "reread_at": began_at + timedelta(minutes=2),
        "created_at": began_at,
        "expires_at": began_at + timedelta(hours=24),
        **changes,
    }
    await rival.run(f"INSERT INTO checkouts ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", *row.values())
    for kind, text in (("local_payment", purchase.payment_id), ("local_secret", purchase.secret)):
        digest = hashlib.sha256(text.encode()).digest()
        await rival.run(
            "INSERT INTO billing_references VALUES (%s, %s, %s, %s)",
            kind,
            digest,
            tenant.organization_id,
            purchase.checkout_id,
        )
    return purchase


def new_peer() -> str:
    """Return an address that has not notified Core yet: it counts what each address asked in the last minute."""
    number = next(_numbers)
    return f"198.18.{number // 256 % 256}.{number % 256}"


async def notify(api: Api, path: str, *, method: str = "GET", peer: str | None = None, **options: Any) -> Answer:
    """Notify as the provider does, or as somebody who wants to be taken for it; from a new address by default."""
    return await api.other(token=None, peer=peer or new_peer()).call(method, path, **options)


async def notify_of(api: Api, purchase: LocalPurchase, *, peer: str | None = None) -> Answer:
    """Notify of the purchase in the way that was observed of the provider."""
    params = {"payment_id": purchase.payment_id, "success": "True"}
    return await notify(api, purchase.path, params=params, peer=peer)
