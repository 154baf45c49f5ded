"""The state of the card provider, and the events that it records."""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.sandbox.card.objects import BASIL, Document, event_object, session_object
from soundmark.sandbox.card.older_shape import ACACIA, to_older_shape
from soundmark.sandbox.card.records import (
    CardCustomer,
    CardEvent,
    CardInvoice,
    CardSubscription,
    CheckoutSession,
    PortalSession,
    Price,
)
from soundmark.sandbox.card.subscription_objects import invoice_object, subscription_object
from soundmark.sandbox.deliveries import Deliveries, Delivery, Notice
from soundmark.sandbox.minting import mint_id
from soundmark.sandbox.shelf import Shelf

Shape = Literal["basil", "acacia"]

# The types that the webhook endpoint is subscribed to; others are only listed.
SENT_TYPES: Final = frozenset(
    {
        "checkout.session.completed",
        "checkout.session.async_payment_succeeded",
        "customer.subscription.created",
        "customer.subscription.updated",
        "customer.subscription.deleted",
        "invoice.paid",
        "invoice.payment_failed",
    }
)
_API_VERSIONS: Final[Mapping[Shape, str]] = {"basil": BASIL, "acacia": ACACIA}


@dataclass(slots=True)
class CardChoices:
    """What a person or a test may choose: the shapes of answers and events, and where events go."""

    webhook_url: str
    api_shape: Shape = "basil"
    event_shape: Shape = "basil"


class CardBook:
    """Everything that the card provider remembers."""

    def __init__(
        self,
        clock: Clock,
        entropy: Entropy,
        deliveries: Deliveries,
        choices: CardChoices,
        webhook_secrets: Sequence[str],
    ) -> None:
        self.clock: Final = clock
        self.choices: Final = choices
        self._entropy: Final = entropy
        self._deliveries: Final = deliveries
        self._webhook_secrets: Final = tuple(webhook_secrets)
        self.prices: Final[Shelf[Price]] = Shelf()
        self.customers: Final[Shelf[CardCustomer]] = Shelf()
        self.sessions: Final[Shelf[CheckoutSession]] = Shelf()
        self.subscriptions: Final[Shelf[CardSubscription]] = Shelf()
        self.invoices: Final[Shelf[CardInvoice]] = Shelf()
        self.portal_sessions: Final[Shelf[PortalSession]] = Shelf()
        self.events: Final[Shelf[CardEvent]] = Shelf()
        # By path, the object that a read returns instead of the stored one; an empty entry stands for a missing object.
        self.given: Final[Shelf[Document]] = Shelf()
        self._invoices_count = 0
        self._seed()

    def mint(self, prefix: str, chars: int = 24) -> str:
        """Return a new id."""
        return mint_id(self._entropy, prefix, chars)

    def number_invoice(self) -> str:
        """Return the number of the next invoice."""
        self._invoices_count += 1
        return f"SANDBOX-{self._invoices_count:04d}"

    def add_price(self, price_id: str, name: str, currency: str, unit_amount: int, interval: str) -> Price:
        """Add a price and its product, or replace the price of that id."""
        price = Price(price_id, self.mint("prod_", 14), name, currency, unit_amount, interval, self.clock.now())
        return self.prices.add(price_id, price)

    def render_session(self, session: CheckoutSession) -> Document:
        """Return a session as it is now."""
        payer = None if session.customer_id is None else self.customers.find(session.customer_id)
        return session_object(session, payer)

    def emit_session(self, event_type: str, session: CheckoutSession) -> CardEvent:
        """Record an event of a session."""
        return self._emit(event_type, self.render_session(session))

    def emit_subscription(
        self, event_type: str, subscription: CardSubscription, previous: Mapping[str, Any] | None = None
    ) -> CardEvent:
        """Record an event of a subscription; `previous` holds the members that were different before."""
        return self._emit(event_type, subscription_object(subscription), previous)

    def emit_invoice(self, event_type: str, invoice: CardInvoice) -> CardEvent:
        """Record an event of an invoice."""
        return self._emit(event_type, invoice_object(invoice))

    def emit_any(self, event_type: str, thing: Mapping[str, Any]) -> CardEvent:
        """Record an event with any object, in whatever shape it has, and send it whatever its type."""
        event = self._record(event_type, {"object": dict(thing)})
        self.send_event(event)
        return event

    def send_event(self, event: CardEvent) -> Delivery:
        """Send an event to the webhook endpoint, also one that was sent before."""
        body = json.dumps(event.document, indent=2).encode()
        return self._deliveries.send(
            Notice("card", event.type, "POST", self.choices.webhook_url, body, lambda: self._sign(body))
        )

    def clear(self) -> None:
        """Forget everything but the seeded prices."""
        shelves: tuple[Shelf[Any], ...] = (
            self.prices, self.customers, self.sessions, self.subscriptions, self.invoices, self.portal_sessions,
            self.events, self.given,
        )  # fmt: skip
        for shelf in shelves:
            shelf.clear()
        self._seed()

    def _seed(self) -> None:
        self.add_price("price_sandbox_monthly", "Sandbox Monthly", "eur", 1900, "month")
        self.add_price("price_sandbox_yearly", "Sandbox Yearly", "eur", 19000, "year")
        self.add_price("price_sandbox_large_monthly", "Sandbox Large Monthly", "eur", 4900, "month")
        self.add_price("price_sandbox_dinar_monthly", "Sandbox Dinar Monthly", "tnd", 59900, "month")

    def _emit(self, event_type: str, thing: Document, previous: Mapping[str, Any] | None = None) -> CardEvent:
        is_older = self.choices.event_shape != "basil"
        data: Document = {"object": to_older_shape(thing) if is_older else thing}
        if previous is not None:
            data["previous_attributes"] = dict(previous)
        event = self._record(event_type, data)
        if event_type in SENT_TYPES:
            self.send_event(event)
        return event

    def _record(self, event_type: str, data: Document) -> CardEvent:
        now = self.clock.now()
        event_id = self.mint("evt_")
        version = _API_VERSIONS[self.choices.event_shape]
        document = event_object(event_id, event_type, now, data, api_version=version)
        return self.events.add(event_id, CardEvent(event_id, event_type, now, document))

    def _sign(self, body: bytes) -> dict[str, str]:
        moment = str(int(self.clock.unix_s()))
        signed = moment.encode() + b"." + body
        signatures = [hmac.digest(secret.encode(), signed, hashlib.sha256).hex() for secret in self._webhook_secrets]
        return {
            "content-type": "application/json; charset=utf-8",
            "stripe-signature": ",".join([f"t={moment}", *(f"v1={signature}" for signature in signatures)]),
            "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        }
