"""What happens to a checkout session on its page: paid at once, paid later, declined, or expired."""

from datetime import timedelta

from soundmark.sandbox.card.book import CardBook
from soundmark.sandbox.card.invoices import PAYER, add_invoice, charge_period
from soundmark.sandbox.card.periods import next_end
from soundmark.sandbox.card.records import CardCustomer, CardInvoice, CardSubscription, CheckoutSession


class SessionClosed(Exception):
    """The session is no longer in the state that this needs."""


def find_session(book: CardBook, session_id: str) -> CheckoutSession | None:
    """Return a session; one whose time is over expires."""
    session = book.sessions.find(session_id)
    if session is not None and session.status == "open" and book.clock.now() >= session.expires_at:
        expire(book, session)
    return session


def expire(book: CardBook, session: CheckoutSession) -> None:
    """End an open session without a payment.

    Raises: SessionClosed.
    """
    _require(session.status == "open")
    session.status = "expired"
    book.emit_session("checkout.session.expired", session)


def pay(book: CardBook, session: CheckoutSession, email: str = PAYER) -> CardSubscription:
    """Pay at once: the subscription begins, and its first invoice is paid.

    Raises: SessionClosed.
    """
    subscription, invoice = _subscribe(book, session, email)
    subscription.status = "active" if subscription.trial_end is None else "trialing"
    _mark_paid(book, invoice)
    session.payment_status = "paid" if subscription.trial_end is None else "no_payment_required"
    book.emit_subscription("customer.subscription.created", subscription)
    book.emit_invoice("invoice.paid", invoice)
    book.emit_session("checkout.session.completed", session)
    return subscription


def pay_later(book: CardBook, session: CheckoutSession, email: str = PAYER) -> CardSubscription:
    """Complete the session with a payment whose outcome is known later, such as a direct debit.

    Raises: SessionClosed.
    """
    subscription, _ = _subscribe(book, session, email)
    book.emit_subscription("customer.subscription.created", subscription)
    book.emit_session("checkout.session.completed", session)
    return subscription


def settle(book: CardBook, session: CheckoutSession) -> None:
    """Let a later payment succeed.

    Raises: SessionClosed.
    """
    subscription, invoice = _awaiting(book, session)
    _mark_paid(book, invoice)
    subscription.status = "active"
    session.payment_status = "paid"
    book.emit_invoice("invoice.paid", invoice)
    book.emit_subscription("customer.subscription.updated", subscription, {"status": "incomplete"})
    book.emit_session("checkout.session.async_payment_succeeded", session)


def fail(book: CardBook, session: CheckoutSession) -> None:
    """Let a later payment fail.

    Raises: SessionClosed.
    """
    subscription, invoice = _awaiting(book, session)
    subscription.status = "incomplete_expired"
    subscription.ended_at = book.clock.now()
    book.emit_invoice("invoice.payment_failed", invoice)
    book.emit_subscription("customer.subscription.updated", subscription, {"status": "incomplete"})
    book.emit_session("checkout.session.async_payment_failed", session)


def _subscribe(book: CardBook, session: CheckoutSession, email: str) -> tuple[CardSubscription, CardInvoice]:
    """Complete the session with an incomplete subscription and an open invoice."""
    _require(session.status == "open" and book.clock.now() < session.expires_at)
    now = book.clock.now().replace(microsecond=0)
    if session.customer_id is None:
        payer = CardCustomer(book.mint("cus_", 14), session.customer_email or email, now)
        session.customer_id = book.customers.add(payer.id, payer).id
    trial_end = now + timedelta(days=session.trial_days) if session.trial_days else None
    subscription = CardSubscription(
        id=book.mint("sub_"),
        item_id=book.mint("si_", 14),
        customer_id=session.customer_id,
        price=session.price,
        quantity=session.quantity,
        status="incomplete",
        metadata=session.subscription_metadata,
        created_at=now,
        period_start=now,
        period_end=trial_end or next_end(now, session.price.interval, now),
        anchor_at=trial_end or now,
        trial_end=trial_end,
    )
    book.subscriptions.add(subscription.id, subscription)
    line = charge_period(book, subscription, session.amount)
    invoice = add_invoice(book, subscription, "subscription_create", [line])
    session.status = "complete"
    session.subscription_id = subscription.id
    session.invoice_id = invoice.id
    return subscription, invoice


def _awaiting(book: CardBook, session: CheckoutSession) -> tuple[CardSubscription, CardInvoice]:
    _require(session.status == "complete" and session.payment_status == "unpaid")
    subscription = book.subscriptions.find(session.subscription_id or "")
    invoice = book.invoices.find(session.invoice_id or "")
    _require(subscription is not None and invoice is not None and subscription.status == "incomplete")
    assert subscription is not None, "checked above"
    assert invoice is not None, "checked above"
    return subscription, invoice


def _mark_paid(book: CardBook, invoice: CardInvoice) -> None:
    invoice.status = "paid"
    invoice.paid_at = book.clock.now()


def _require(is_allowed: bool) -> None:
    if not is_allowed:
        raise SessionClosed
