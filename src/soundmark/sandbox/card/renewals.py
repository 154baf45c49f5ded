"""What happens to a subscription after it began: renewals, failures, changes and its end."""

from collections.abc import Callable, Mapping
from typing import Final

from soundmark.sandbox.card.book import CardBook
from soundmark.sandbox.card.periods import next_end
from soundmark.sandbox.card.purchases import add_invoice
from soundmark.sandbox.card.records import CardSubscription, Price

UPDATED: Final = "customer.subscription.updated"


class SubscriptionEnded(Exception):
    """The subscription has ended, so that this cannot happen to it."""


def renew(book: CardBook, subscription: CardSubscription) -> None:
    """Begin the next period, paid; a subscription that is set to cancel ends instead."""
    if subscription.cancel_at_period_end:
        end(book, subscription)
        return
    previous = subscription.status
    _begin_next_period(subscription)
    invoice = add_invoice(book, subscription, "subscription_cycle", _cost(subscription))
    invoice.status, invoice.paid_at = "paid", book.clock.now()
    subscription.status = "active"
    book.emit_invoice("invoice.paid", invoice)
    book.emit_subscription(UPDATED, subscription, {"status": previous})


def fail_renewal(book: CardBook, subscription: CardSubscription) -> None:
    """Begin the next period with a payment that fails; the card is tried again later."""
    previous = subscription.status
    _begin_next_period(subscription)
    invoice = add_invoice(book, subscription, "subscription_cycle", _cost(subscription))
    subscription.status = "past_due"
    book.emit_invoice("invoice.payment_failed", invoice)
    book.emit_subscription(UPDATED, subscription, {"status": previous})


def recover(book: CardBook, subscription: CardSubscription) -> None:
    """Let the open invoice of a past-due subscription be paid after all."""
    _require_live(subscription)
    invoice = book.invoices.find(subscription.latest_invoice_id or "")
    if invoice is None or invoice.status == "paid":
        return
    previous = subscription.status
    invoice.status, invoice.paid_at = "paid", book.clock.now()
    invoice.attempts_count += 1
    subscription.status = "active"
    book.emit_invoice("invoice.paid", invoice)
    book.emit_subscription(UPDATED, subscription, {"status": previous})


def cancel_at_period_end(book: CardBook, subscription: CardSubscription) -> None:
    """Let the subscription end with its period."""
    _require_live(subscription)
    subscription.cancel_at_period_end = True
    subscription.canceled_at = book.clock.now()
    book.emit_subscription(UPDATED, subscription, {"cancel_at_period_end": False})


def resume(book: CardBook, subscription: CardSubscription) -> None:
    """Withdraw a cancellation before the period ends."""
    _require_live(subscription)
    subscription.cancel_at_period_end = False
    subscription.canceled_at = None
    book.emit_subscription(UPDATED, subscription, {"cancel_at_period_end": True})


def end(book: CardBook, subscription: CardSubscription) -> None:
    """End the subscription at once."""
    _require_live(subscription)
    now = book.clock.now()
    subscription.status = "canceled"
    subscription.canceled_at = subscription.canceled_at or now
    subscription.ended_at = now
    book.emit_subscription("customer.subscription.deleted", subscription)


def change_price(book: CardBook, subscription: CardSubscription, price: Price) -> None:
    """Move the subscription to another price; the difference is left to the next invoice."""
    _require_live(subscription)
    if price.interval != subscription.price.interval:
        # The provider begins a new period when the interval changes.
        now = book.clock.now().replace(microsecond=0)
        subscription.anchor_at = subscription.period_start = now
        subscription.period_end = next_end(now, price.interval, now)
    previous = subscription.price.id
    subscription.price = price
    book.emit_subscription(UPDATED, subscription, {"items": {"data": [{"price": {"id": previous}}]}})


def set_status(book: CardBook, subscription: CardSubscription, status: str) -> None:
    """Give the subscription any status, also one that the provider invents later."""
    previous = subscription.status
    subscription.status = status
    book.emit_subscription(UPDATED, subscription, {"status": previous})


ACTS: Final[Mapping[str, Callable[[CardBook, CardSubscription], None]]] = {
    "renew": renew,
    "fail-renewal": fail_renewal,
    "recover": recover,
    "cancel-at-period-end": cancel_at_period_end,
    "resume": resume,
    "end": end,
}


def _begin_next_period(subscription: CardSubscription) -> None:
    _require_live(subscription)
    subscription.period_start = subscription.period_end
    subscription.period_end = next_end(subscription.anchor_at, subscription.price.interval, subscription.period_start)
    subscription.trial_end = None


def _cost(subscription: CardSubscription) -> int:
    return subscription.price.unit_amount * subscription.quantity


def _require_live(subscription: CardSubscription) -> None:
    if subscription.ended_at is not None:
        raise SubscriptionEnded
