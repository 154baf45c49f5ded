"""`/control/card`: prices, payments, renewals, and events in any order."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from soundmark.sandbox.card import purchases, renewals
from soundmark.sandbox.card.book import CardBook
from soundmark.sandbox.card.invoices import PAYER, STATUS_OF_PAUSE
from soundmark.sandbox.card.objects import customer_object, portal_object, price_object
from soundmark.sandbox.card.records import CardCustomer, CardSubscription, CheckoutSession
from soundmark.sandbox.card.subscription_objects import invoice_object, subscription_object
from soundmark.sandbox.control.act import Act
from soundmark.sandbox.control.fields import ControlRefused, Fields
from soundmark.sandbox.systems import Systems

_SHAPES: Final = ("basil", "acacia")
_PRORATIONS: Final = ("create_prorations", "always_invoice", "none")
_SESSION_ACTS: Final[Mapping[str, Callable[[CardBook, CheckoutSession], object]]] = {
    "pay": purchases.pay,
    "pay-later": purchases.pay_later,
    "settle": purchases.settle,
    "fail": purchases.fail,
    "expire": purchases.expire,
}


class CardControl:
    """The acts on the card provider."""

    def __init__(self, systems: Systems) -> None:
        self._book: Final = systems.card

    def acts(self) -> list[Act]:
        """Return the acts."""
        return [
            Act("GET", "/card", self._show),
            Act("POST", "/card/settings", self._choose),
            Act("POST", "/card/prices", self._add_price),
            Act("POST", "/card/customers", self._add_customer),
            Act("POST", "/card/objects", self._give),
            Act("POST", "/card/sessions/{id}/{act}", self._act_on_session),
            Act("POST", "/card/subscriptions/{id}", self._change_subscription),
            Act("POST", "/card/subscriptions/{id}/{act}", self._act_on_subscription),
            Act("POST", "/card/events", self._emit),
            Act("POST", "/card/events/{id}/send", self._send_event),
        ]

    async def _show(self, _: Fields, __: Mapping[str, str]) -> Any:
        book = self._book
        return {
            "prices": [price_object(price) for price in book.prices.newest_first()],
            "sessions": [book.render_session(session) for session in book.sessions.newest_first()],
            "subscriptions": [subscription_object(each) for each in book.subscriptions.newest_first()],
            "invoices": [invoice_object(invoice) for invoice in book.invoices.newest_first()],
            "portal_sessions": [portal_object(session) for session in book.portal_sessions.newest_first()],
            "events": [event.document for event in book.events.newest_first()],
        }

    async def _choose(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"webhook_url", "api_shape", "event_shape"})
        choices = self._book.choices
        if fields.has("webhook_url"):
            choices.webhook_url = fields.text("webhook_url")
        if fields.has("api_shape"):
            choices.api_shape = "basil" if fields.choice("api_shape", _SHAPES) == "basil" else "acacia"
        if fields.has("event_shape"):
            choices.event_shape = "basil" if fields.choice("event_shape", _SHAPES) == "basil" else "acacia"
        return {}

    async def _add_price(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"id", "name", "currency", "unit_amount", "interval", "active"})
        price = self._book.add_price(
            fields.text("id", self._book.mint("price_")),
            fields.text("name", "Sandbox price"),
            fields.text("currency", "eur").lower(),
            fields.whole("unit_amount"),
            fields.choice("interval", ("month", "year"), "month"),
        )
        price.is_active = fields.flag("active", default=True)
        return price_object(price)

    async def _add_customer(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"id", "email"})
        customer_id = fields.text("id", self._book.mint("cus_", 14))
        customer = CardCustomer(customer_id, fields.text("email", PAYER), self._book.clock.now())
        return customer_object(self._book.customers.add(customer_id, customer))

    async def _give(self, fields: Fields, _: Mapping[str, str]) -> Any:
        """Answer each read of a path with any object; without one, as if there were none."""
        fields.require_known({"path", "object"})
        self._book.given.add(fields.text("path"), dict(fields.mapping("object")))
        return {}

    async def _act_on_session(self, fields: Fields, path: Mapping[str, str]) -> Any:
        fields.require_known(set())
        session = purchases.find_session(self._book, path["id"])
        act = _SESSION_ACTS.get(path["act"])
        if session is None or act is None:
            raise ControlRefused("there is no such session or act", 404)
        try:
            act(self._book, session)
        except purchases.SessionClosed:
            raise ControlRefused(f"the session is {session.status} and {session.payment_status}", 409) from None
        return self._book.render_session(session)

    async def _act_on_subscription(self, fields: Fields, path: Mapping[str, str]) -> Any:
        fields.require_known(set())
        act = renewals.ACTS.get(path["act"])
        if act is None:
            raise ControlRefused("there is no such act", 404)
        return self._change(path["id"], act)

    async def _change_subscription(self, fields: Fields, path: Mapping[str, str]) -> Any:
        """Change the price, the collection of payments, the end of the trial and the status, in this order."""
        fields.require_known({"status", "price", "proration_behavior", "is_paid", "pause_collection", "trial_end"})

        def change(book: CardBook, subscription: CardSubscription) -> None:
            if fields.has("price"):
                price = book.prices.find(fields.text("price"))
                if price is None:
                    raise ControlRefused("there is no such price")
                proration = fields.choice("proration_behavior", _PRORATIONS, _PRORATIONS[0])
                is_paid = fields.flag("is_paid", default=True)
                renewals.change_price(book, subscription, price, proration=proration, is_paid=is_paid)
            if fields.has("pause_collection"):
                behavior = fields.choice("pause_collection", ("none", *STATUS_OF_PAUSE))
                renewals.pause_collection(book, subscription, None if behavior == "none" else behavior)
            if fields.has("trial_end"):
                trial_end = datetime.fromtimestamp(fields.whole("trial_end"), UTC)
                renewals.move_trial_end(book, subscription, trial_end)
            if fields.has("status"):
                renewals.set_status(book, subscription, fields.text("status"))

        return self._change(path["id"], change)

    def _change(self, subscription_id: str, act: Callable[[CardBook, CardSubscription], None]) -> Any:
        subscription = self._book.subscriptions.find(subscription_id)
        if subscription is None:
            raise ControlRefused("there is no such subscription", 404)
        try:
            act(self._book, subscription)
        except renewals.SubscriptionEnded:
            raise ControlRefused("the subscription has ended", 409) from None
        except renewals.SubscriptionPaused:
            raise ControlRefused("the subscription is paused", 409) from None
        return subscription_object(subscription)

    async def _emit(self, fields: Fields, _: Mapping[str, str]) -> Any:
        """Record and send an event with any object, as the provider might one day."""
        fields.require_known({"type", "object"})
        return self._book.emit_any(fields.text("type"), fields.mapping("object")).document

    async def _send_event(self, fields: Fields, path: Mapping[str, str]) -> Any:
        fields.require_known(set())
        event = self._book.events.find(path["id"])
        if event is None:
            raise ControlRefused("there is no such event", 404)
        return {"webhook": self._book.send_event(event).id}
