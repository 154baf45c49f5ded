"""A purchase through the card provider: the provider's objects, and its events, signed as it signs them."""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from support.api.core_client import Answer, Api
from support.billing.offers import CARD_OFFER, PRICE, make_card_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import Tenant

CARD_SECRET = "sk_test_MARKsecretOfTheCardProvider"
WEBHOOK_SECRET = "whsec_MARKsecretOfTheCardWebhook"
PATH = "/v1/billing/webhooks/card"
# In the order in which the provider sends them for one purchase that is paid a little later and cancelled.
SEVEN_EVENTS = (
    "checkout.session.completed",
    "customer.subscription.created",
    "invoice.payment_failed",
    "invoice.paid",
    "checkout.session.async_payment_succeeded",
    "customer.subscription.updated",
    "customer.subscription.deleted",
)
CUSTOMER = "cus_MARKcustomer"
# What the provider says about asking again.
ADVISED, FINAL = {"stripe-should-retry": "true"}, {"stripe-should-retry": "false"}
_numbers: Iterator[int] = count(1)

# No log may contain any of these.
for _marker in (CUSTOMER, "cs_test_", PRICE, "/card/portal/bps_"):
    remember_secret(_marker)


@dataclass
class CardPurchase:
    """A checkout of ours, and what the provider has of it. `number` makes its references its own."""

    organization_id: str
    checkout_id: str
    began_at: datetime
    offer_id: str = CARD_OFFER
    price: str = PRICE
    number: int = field(default_factory=lambda: next(_numbers))
    customer: str = ""
    status: str = "active"
    is_paid: bool = True
    changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.customer = self.customer or f"cus_MARKcustomer{self.number}"

    @property
    def session_id(self) -> str:
        return f"cs_test_MARKsession{self.number}"

    @property
    def subscription_id(self) -> str:
        return f"sub_MARKsubscription{self.number}"

    @property
    def metadata(self) -> dict[str, str]:
        return {
            "svc_checkout_id": self.checkout_id,
            "svc_organization_id": self.organization_id,
            "svc_offer_id": self.offer_id,
        }

    @property
    def period_end(self) -> datetime:
        return self.began_at + timedelta(days=30)

    def session(self, **changes: Any) -> dict[str, Any]:
        return {
            "id": self.session_id,
            "object": "checkout.session",
            "status": "complete",
            "payment_status": "paid" if self.is_paid else "unpaid",
            "mode": "subscription",
            "client_reference_id": self.checkout_id,
            "customer": self.customer,
            "customer_details": {"email": "mark.payer@example.org", "name": "MARK Payer"},
            "subscription": self.subscription_id,
            "metadata": self.metadata,
            "url": None,
            **changes,
        }

    def subscription(self, **changes: Any) -> dict[str, Any]:
        """Return the subscription as the provider has it now, in the shape of basil."""
        period = {"current_period_start": unix(self.began_at), "current_period_end": unix(self.period_end)}
        return {
            "id": self.subscription_id,
            "object": "subscription",
            "status": self.status,
            "items": {"object": "list", "data": [{"id": "si_1", "price": {"id": self.price}, **period}]},
            "cancel_at_period_end": False,
            "customer": self.customer,
            "default_payment_method": {"card": {"last4": "MARK4242"}},
            "metadata": self.metadata,
            "latest_invoice": self.invoice(),
            **self.changes,
            **changes,
        }

    def invoice(self, **changes: Any) -> dict[str, Any]:
        details = {"subscription": self.subscription_id, "metadata": self.metadata}
        return {
            "id": f"in_MARKinvoice{self.number}",
            "object": "invoice",
            "created": unix(self.began_at),
            "status": "paid" if self.is_paid else "open",
            "amount_paid": 10_555 if self.is_paid else 0,
            "currency": "tnd",
            "billing_reason": "subscription_create",
            "customer": self.customer,
            "customer_email": "mark.payer@example.org",
            "parent": {"type": "subscription_details", "subscription_details": details},
            "lines": {"object": "list", "data": [self.line()]},
            **changes,
        }

    def line(self, **changes: Any) -> dict[str, Any]:
        """Return the line of an invoice that charges for the period."""
        details = {"proration": False, "subscription": self.subscription_id, "subscription_item": "si_1"}
        return {
            "id": "il_1",
            "object": "line_item",
            "amount": 10_555,
            "parent": {
                "type": "subscription_item_details",
                "invoice_item_details": None,
                "subscription_item_details": details,
            },
            "period": {"start": unix(self.began_at), "end": unix(self.period_end)},
            "pricing": {"type": "price_details", "price_details": {"price": self.price, "product": "prod_1"}},
            **changes,
        }

    def event(self, kind: str, *, at: datetime | None = None, **changes: Any) -> dict[str, Any]:
        """Return an event of this type; `changes` are those of its object."""
        of_object = {"checkout": self.session, "customer": self.subscription, "invoice": self.invoice}
        made = of_object[kind.partition(".")[0]]()
        if kind == "invoice.payment_failed":
            made |= {"status": "open", "amount_paid": 0}
        return {
            "id": f"evt_{next(_numbers)}of{self.number}",
            "object": "event",
            "api_version": "2025-03-31.basil",
            "created": unix(at or self.began_at),
            "livemode": False,
            "type": kind,
            "data": {"object": {**made, **changes}},
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
        }

    async def publish(self, card: RunningSandbox, **changes: Any) -> None:
        """Let the provider have the objects of this purchase as they are now; `changes` are the subscription's."""
        await put_object(card, f"/v1/checkout/sessions/{self.session_id}", self.session())
        await put_object(card, f"/v1/subscriptions/{self.subscription_id}", self.subscription(**changes))

    async def withdraw(self, card: RunningSandbox) -> None:
        """Let the provider have no such subscription."""
        await put_object(card, f"/v1/subscriptions/{self.subscription_id}", {})


async def sell_price(card: RunningSandbox) -> None:
    """Let the provider have the price of `make_card_offer`, and a customer."""
    await card.control("/card/prices", id=PRICE, currency="tnd", unit_amount=10_555)
    await card.control("/card/customers", id=CUSTOMER)


async def put_object(card: RunningSandbox, path: str, document: Mapping[str, Any]) -> None:
    """Let the provider answer each read of a path with an object, or an empty one as if it had none."""
    await card.control("/card/objects", path=path, object=document)


async def list_sessions(card: RunningSandbox) -> list[dict[str, Any]]:
    """Return the checkouts at the provider, the newest first."""
    sessions: list[dict[str, Any]] = (await card.look("card"))["sessions"]
    return sessions


async def list_keys(card: RunningSandbox) -> list[str]:
    """Return the idempotency keys in the order of the requests that had one."""
    return [call["idempotency_key"] for call in await card.calls("card") if call["idempotency_key"]]


async def list_paths(card: RunningSandbox) -> list[str]:
    """Return what was asked, in order."""
    return [call["path"].removeprefix("/card") for call in await card.calls("card")]


def unix(moment: datetime) -> int:
    return int(moment.timestamp())


async def begin_purchase(tenant: Tenant, rival: Rival, card: RunningSandbox, **facts: Any) -> CardPurchase:
    """Begin a checkout as `POST /v1/billing/checkouts` would, which is paid at once; the provider has its objects."""
    purchase = make_purchase(tenant, **facts)
    await insert_checkout(rival, purchase)
    await purchase.publish(card)
    return purchase


def make_purchase(tenant: Tenant, **facts: Any) -> CardPurchase:
    number = next(_numbers)
    began_at = tenant.api.clock.now().replace(microsecond=0)
    return CardPurchase(tenant.organization_id, f"bco_purchase{number:014}", began_at, number=number, **facts)


async def insert_checkout(rival: Rival, purchase: CardPurchase, **changes: Any) -> None:
    """Write the row of the purchase's checkout, pending and with its page."""
    await insert_checkouts(rival, [purchase], **changes)


async def insert_checkouts(rival: Rival, purchases: Sequence[CardPurchase], **changes: Any) -> None:
    """Write the rows of several purchases' checkouts."""
    await make_card_offer(rival)
    rows = [_checkout_row(purchase) | changes for purchase in purchases]
    places = ", ".join(["%s"] * len(rows[0]))
    await rival.run(
        f"INSERT INTO checkouts ({', '.join(rows[0])}) VALUES {', '.join([f'({places})'] * len(rows))}",
        *(value for row in rows for value in row.values()),
    )


def _checkout_row(purchase: CardPurchase) -> dict[str, Any]:
    return {
        "organization_id": purchase.organization_id,
        "id": purchase.checkout_id,
        "offer_id": CARD_OFFER,
        "plan_id": "plan_codes_studio",
        "product": "codes",
        "provider": "card",
        "status": "pending",
        "price_reference": PRICE,
        "provider_reference": purchase.session_id,
        "reread_at": purchase.began_at + timedelta(minutes=2),
        "created_at": purchase.began_at,
        "expires_at": purchase.began_at + timedelta(hours=24),
    }


def sign(body: bytes, *, at_s: float, secret: str = WEBHOOK_SECRET) -> str:
    """Return the provider's signature of these bytes."""
    moment = int(at_s)
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


async def deliver(api: Api, event: Any) -> Answer:
    """Deliver an event as the provider does."""
    body = json.dumps(event).encode()
    return await deliver_bytes(api, body, sign(body, at_s=api.clock.unix_s()))


async def deliver_bytes(api: Api, body: bytes, signature: str | None) -> Answer:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if signature is not None:
        headers["Stripe-Signature"] = signature
    return await api.other(token=None, peer="203.0.113.7").post(PATH, content=body, headers=headers)


async def status_of(api: Api, event: Any) -> str:
    """Deliver an event, which must be taken; return what became of it."""
    answer = await deliver(api, event)
    assert answer.status == 200, answer.body
    assert answer.json.keys() == {"status"}
    status: str = answer.json["status"]
    return status
