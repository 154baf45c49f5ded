"""Making invoices, and deciding what becomes of them."""

from collections.abc import Sequence
from typing import Final

from soundmark.sandbox.card.book import CardBook
from soundmark.sandbox.card.records import CardInvoice, CardInvoiceLine, CardSubscription, Price

PAYER: Final = "payer@sandbox.example"

# What becomes of the invoices of a subscription whose collection is paused, by its behaviour.
STATUS_OF_PAUSE: Final = {"void": "void", "keep_as_draft": "draft", "mark_uncollectible": "uncollectible"}
_EVENT_OF_STATUS: Final = {
    "void": "invoice.voided",
    "draft": "invoice.created",
    "uncollectible": "invoice.marked_uncollectible",
    "open": "invoice.payment_failed",
    "paid": "invoice.paid",
}


def add_invoice(
    book: CardBook, subscription: CardSubscription, billing_reason: str, lines: Sequence[CardInvoiceLine]
) -> CardInvoice:
    """Add an open invoice, which is the subscription's latest from now on."""
    payer = book.customers.find(subscription.customer_id)
    invoice = CardInvoice(
        id=book.mint("in_"),
        number=book.number_invoice(),
        subscription_id=subscription.id,
        subscription_metadata=subscription.metadata,
        customer_id=subscription.customer_id,
        customer_email=PAYER if payer is None else payer.email,
        item_id=subscription.item_id,
        currency=subscription.price.currency,
        lines=list(lines),
        status="open",
        billing_reason=billing_reason,
        created_at=book.clock.now(),
    )
    subscription.latest_invoice_id = invoice.id
    return book.invoices.add(invoice.id, invoice)


def charge_period(book: CardBook, subscription: CardSubscription, amount: int | None = None) -> CardInvoiceLine:
    """Return the line that charges for the subscription's period: `amount`, or what its price says."""
    return CardInvoiceLine(
        id=book.mint("il_"),
        price=subscription.price,
        quantity=subscription.quantity,
        amount=subscription.price.unit_amount * subscription.quantity if amount is None else amount,
        period_start=subscription.period_start,
        period_end=subscription.period_end,
    )


def prorate(book: CardBook, subscription: CardSubscription, price: Price, *, sign: int) -> CardInvoiceLine:
    """Return the line for the rest of the period at a price: a credit if `sign` is -1, a charge if it is 1."""
    now = book.clock.now().replace(microsecond=0)
    begins_at = min(max(now, subscription.period_start), subscription.period_end)
    share = (subscription.period_end - begins_at) / (subscription.period_end - subscription.period_start)
    return CardInvoiceLine(
        id=book.mint("il_"),
        price=price,
        quantity=subscription.quantity,
        amount=sign * round(price.unit_amount * subscription.quantity * share),
        period_start=begins_at,
        period_end=subscription.period_end,
        proration_item_id=book.mint("ii_"),
    )


def decide(book: CardBook, invoice: CardInvoice, status: str) -> None:
    """Give an invoice a status, and tell of it."""
    invoice.status = status
    invoice.paid_at = book.clock.now() if status == "paid" else None
    book.emit_invoice(_EVENT_OF_STATUS[status], invoice)


def is_payable(invoice: CardInvoice) -> bool:
    """Return whether an invoice can still be paid."""
    return invoice.status in {"draft", "open", "uncollectible"}
