"""Events of the card provider, and the facts that the provider confirms afterwards.

An event is a trigger. It says which objects to ask the provider about, and for the first grant it must agree with the
checkout that its metadata name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from soundmark.core.domain.billing.card import (
    CHECKOUT_KEY,
    OFFER_KEY,
    ORGANIZATION_KEY,
    CardInvoice,
    CardSession,
    CardSubscription,
)
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.kit.text.ids import may_be_id

# API v1, "Inbound provider webhooks".
SESSION_EVENTS: Final = frozenset({"checkout.session.completed", "checkout.session.async_payment_succeeded"})
SUBSCRIPTION_EVENTS: Final = frozenset(
    {"customer.subscription.created", "customer.subscription.updated", "customer.subscription.deleted"}
)
INVOICE_PAID: Final = "invoice.paid"
INVOICE_EVENTS: Final = frozenset({INVOICE_PAID, "invoice.payment_failed"})
CARD_EVENTS: Final = SESSION_EVENTS | SUBSCRIPTION_EVENTS | INVOICE_EVENTS

_PAID_SESSION: Final = frozenset({"paid", "no_payment_required"})
_NEVER_PAID: Final = frozenset({"incomplete", "incomplete_expired"})

CardObject = CardSession | CardSubscription | CardInvoice


@dataclass(frozen=True, slots=True)
class CardEvent:
    """An event whose signature was verified. `subject` is None if its type is not listed or its object not readable."""

    id: str
    type: str
    created_at: datetime
    subject: CardObject | None = field(repr=False)

    @property
    def session(self) -> CardSession | None:
        """The session that the event is about."""
        return self.subject if isinstance(self.subject, CardSession) else None

    @property
    def subscription_reference(self) -> str | None:
        """The subscription to ask the provider about."""
        match self.subject:
            case CardSubscription(reference=reference):
                return reference
            case CardSession(subscription=reference) | CardInvoice(subscription=reference):
                return reference
            case _:
                return None

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of the object, or those of an invoice's subscription."""
        return {} if self.subject is None else self.subject.metadata

    @property
    def paid_invoice(self) -> CardInvoice | None:
        """The invoice that the event says was paid."""
        invoice = self.subject if isinstance(self.subject, CardInvoice) else None
        return invoice if invoice is not None and self.type == INVOICE_PAID and invoice.status == "paid" else None


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What the provider confirmed: the session, the subscription as it is now, and paid invoices of it."""

    session: CardSession | None = field(repr=False)
    subscription: CardSubscription = field(repr=False)
    paid_invoices: tuple[CardInvoice, ...] = field(repr=False)

    @property
    def is_paid(self) -> bool:
        """Whether the purchase was paid.

        A paid session or invoice shows it. If the provider did not include the latest invoice, the subscription's own
        status does.
        """
        if self.session is not None and is_paid_session(self.session):
            return True
        if self.paid_invoices:
            return True
        return self.subscription.latest_invoice is None and self.subscription.status not in _NEVER_PAID

    @property
    def customer(self) -> str | None:
        """The provider's customer who paid."""
        return self.subscription.customer or (self.session.customer if self.session is not None else None)


def is_paid_session(session: CardSession) -> bool:
    """Return whether nothing is left to pay."""
    return session.payment_status in _PAID_SESSION


def gather_facts(event: CardEvent | None, session: CardSession | None, subscription: CardSubscription) -> CardFacts:
    """Put together what is known of a purchase, each paid invoice once."""
    paid = {}
    for invoice in (event.paid_invoice if event is not None else None, subscription.latest_invoice):
        if invoice is not None and invoice.status == "paid":
            paid[invoice.reference] = invoice
    return CardFacts(session, subscription, tuple(paid.values()))


def names_checkout(metadata: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the organisation and the checkout that metadata name."""
    organization_id, checkout_id = metadata.get(ORGANIZATION_KEY, ""), metadata.get(CHECKOUT_KEY, "")
    return (organization_id, checkout_id) if may_be_id(organization_id) and may_be_id(checkout_id) else None


def find_disagreement(checkout: Checkout, facts: CardFacts) -> str | None:
    """Return the name of a fact in which a purchase differs from its checkout; None if everything agrees.

    Nothing is granted before this was judged.

    Source: contract, section 7, card events.
    """
    expected = {
        CHECKOUT_KEY: checkout.id,
        ORGANIZATION_KEY: checkout.organization_id,
        OFFER_KEY: checkout.offer_id,
    }
    session, subscription = facts.session, facts.subscription
    if session is not None and session.client_reference_id != checkout.id:
        return "client_reference_id"
    if session is not None and not _agrees(session.metadata, expected):
        return "session_metadata"
    if not _agrees(subscription.metadata, expected):
        return "subscription_metadata"
    if subscription.prices != (checkout.price_reference,):
        return "price"
    return None


def _agrees(metadata: Mapping[str, str], expected: Mapping[str, str]) -> bool:
    return all(metadata.get(key) == value for key, value in expected.items())
