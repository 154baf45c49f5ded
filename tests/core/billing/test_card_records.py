"""The records of what the payment providers say."""

from datetime import UTC, datetime

from soundmark.core.domain.billing.card import (
    CHECKOUT_KEY,
    OFFER_KEY,
    ORGANIZATION_KEY,
    CardInvoice,
    CardInvoiceLine,
    CardSession,
    CardSubscription,
)
from soundmark.core.domain.billing.card_event import CardEvent, CardFacts
from soundmark.core.domain.billing.payment import VerifiedPayment

NOW = datetime(2026, 11, 23, tzinfo=UTC)
LINE = CardInvoiceLine("sub_MARK", "price_MARK", False, NOW, NOW)
INVOICE = CardInvoice("in_MARK", "invoice_status", "sub_MARK", "cus_MARK", 10_555, "TND", {}, NOW, (LINE,))
SUBSCRIPTION = CardSubscription(
    "sub_MARK", "subscription_status", "cus_MARK", ("price_MARK",), NOW, False, {}, INVOICE, NOW
)
SESSION = CardSession(
    "cs_MARK", "session_status", "paid", "bco_1", "cus_MARK", "sub_MARK", {}, "https://example.org/MARK"
)


def test_no_record_prints_a_reference_or_a_page_of_a_provider() -> None:
    """It would reach the log with any message that holds the record."""
    paid = VerifiedPayment("bco_1", "in_MARK", 10_555, "TND", "Studio", NOW, NOW)
    for record, word in (
        (INVOICE, "invoice_status"),
        (LINE, "is_credit"),
        (SUBSCRIPTION, "subscription_status"),
        (SESSION, "session_status"),
        (paid, "bco_1"),
    ):
        assert "MARK" not in repr(record)
        assert word in repr(record), "the rest is shown"


def test_an_event_and_what_was_confirmed_do_not_print_the_providers_objects() -> None:
    assert "_status" not in repr(CardEvent("evt_1", "invoice.paid", NOW, INVOICE))
    assert "_status" not in repr(CardFacts(SESSION, SUBSCRIPTION, (INVOICE,)))


def test_the_metadata_keys_are_those_of_the_contract() -> None:
    """Subscriptions that customers have paid carry them at the provider for years."""
    assert (CHECKOUT_KEY, ORGANIZATION_KEY, OFFER_KEY) == ("svc_checkout_id", "svc_organization_id", "svc_offer_id")
