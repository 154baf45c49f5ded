"""What happens to a subscription after it began: renewals, failures, changes and its end."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from soundmark.sandbox.card.book import CardBook
from soundmark.sandbox.card.invoices import STATUS_OF_PAUSE, add_invoice, charge_period, decide, is_payable, prorate
from soundmark.sandbox.card.objects import unix
from soundmark.sandbox.card.periods import next_end
from soundmark.sandbox.card.records import CardInvoiceLine, CardSubscription, Price
from soundmark.sandbox.card.subscription_objects import pause_object

UPDATED: Final = "customer.subscription.updated"


class SubscriptionEnded(Exception):
    """The subscription has ended, so that this cannot happen to it."""


class SubscriptionPaused(Exception):
    """The provider makes no invoices while the subscription is paused."""


def renew(book: CardBook, subscription: CardSubscription) -> None:
    """Begin the next period, paid; a subscription that is set to cancel ends instead."""
    if subscription.cancel_at_period_end:
        end(book, subscription)
        return
    _renew(book, subscription, is_paid=True)


def fail_renewal(book: CardBook, subscription: CardSubscription) -> None:
    """Begin the next period with a payment that fails; the card is tried again later."""
    _renew(book, subscription, is_paid=False)


def recover(book: CardBook, subscription: CardSubscription) -> None:
    """Let the latest invoice be paid after all, if it can be."""
    _require_live(subscription)
    invoice = book.invoices.find(subscription.latest_invoice_id or "")
    if invoice is None or not is_payable(invoice):
        return
    previous = subscription.status
    invoice.attempts_count += 1
    subscription.status = "active"
    decide(book, invoice, "paid")
    book.emit_subscription(UPDATED, subscription, {"status": previous})


def pause_collection(book: CardBook, subscription: CardSubscription, behavior: str | None = "void") -> None:
    """Collect no payments from now on, or collect them again if there is no behaviour; the status stays."""
    _require_live(subscription)
    previous = pause_object(subscription)
    subscription.pause_behavior = behavior
    book.emit_subscription(UPDATED, subscription, {"pause_collection": previous})


def resume_collection(book: CardBook, subscription: CardSubscription) -> None:
    """Collect payments again."""
    pause_collection(book, subscription, None)


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


def change_price(
    book: CardBook,
    subscription: CardSubscription,
    price: Price,
    *,
    proration: str = "create_prorations",
    is_paid: bool = True,
) -> None:
    """Move the subscription to another price.

    The difference is left to the next invoice, or with `always_invoice` invoiced at once, or with `none` forgotten. If
    the interval changes, the provider begins a new period and invoices at once. An invoice that is not paid makes the
    subscription past due.
    """
    _require_live(subscription)
    before, previous = subscription.price, subscription.status
    lines = [] if proration == "none" else [prorate(book, subscription, before, sign=-1)]
    begins_anew = price.interval != before.interval
    if not begins_anew and lines:
        lines.append(prorate(book, subscription, price, sign=1))
    subscription.price = price
    if begins_anew:
        now = book.clock.now().replace(microsecond=0)
        subscription.anchor_at = subscription.period_start = now
        subscription.period_end = next_end(now, price.interval, now)
        lines.append(charge_period(book, subscription))
    if begins_anew or (lines and proration == "always_invoice"):
        invoice = add_invoice(book, subscription, "subscription_update", [*_take_pending(subscription), *lines])
        is_settled = is_paid or invoice.amount_due == 0
        subscription.status = subscription.status if is_settled else "past_due"
        decide(book, invoice, "paid" if is_settled else "open")
    else:
        subscription.pending_lines += lines
    items = {"data": [{"price": {"id": before.id}}]}
    book.emit_subscription(UPDATED, subscription, {"items": items, "status": previous})


def move_trial_end(book: CardBook, subscription: CardSubscription, trial_end: datetime) -> None:
    """Let the trial end at another time, with which its period ends."""
    _require_live(subscription)
    previous = unix(subscription.trial_end)
    subscription.trial_end = subscription.period_end = subscription.anchor_at = trial_end
    subscription.status = "trialing"
    book.emit_subscription(UPDATED, subscription, {"trial_end": previous})


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
    "pause-collection": pause_collection,
    "resume-collection": resume_collection,
}


def _renew(book: CardBook, subscription: CardSubscription, *, is_paid: bool) -> None:
    """Begin the next period with its invoice.

    While the collection is paused, or the subscription is unpaid, the provider does not try to have it paid.
    """
    _require_live(subscription)
    if subscription.status == "paused":
        raise SubscriptionPaused
    previous = subscription.status
    subscription.period_start = subscription.period_end
    subscription.period_end = next_end(subscription.anchor_at, subscription.price.interval, subscription.period_start)
    lines = [*_take_pending(subscription), charge_period(book, subscription)]
    invoice = add_invoice(book, subscription, "subscription_cycle", lines)
    if subscription.pause_behavior is not None:
        subscription.status = "active" if previous == "trialing" else previous
        status = STATUS_OF_PAUSE[subscription.pause_behavior]
    elif previous == "unpaid":
        status = "draft"
    else:
        subscription.status = "active" if is_paid else "past_due"
        status = "paid" if is_paid else "open"
    decide(book, invoice, status)
    book.emit_subscription(UPDATED, subscription, {"status": previous})


def _take_pending(subscription: CardSubscription) -> list[CardInvoiceLine]:
    lines, subscription.pending_lines = subscription.pending_lines, []
    return lines


def _require_live(subscription: CardSubscription) -> None:
    if subscription.ended_at is not None:
        raise SubscriptionEnded
