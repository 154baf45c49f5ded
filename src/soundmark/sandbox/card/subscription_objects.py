"""The card provider's subscriptions and invoices, with every member that its SDK declares at basil."""

from typing import Final

from soundmark.sandbox.card.objects import Document, list_object, plan_object, price_object, unix
from soundmark.sandbox.card.records import CardInvoice, CardInvoiceLine, CardSubscription

# Members that a subscription sold by us always leaves empty.
_SUBSCRIPTION_NULLS: Final = (
    "application application_fee_percent billing_cycle_anchor_config cancel_at days_until_due default_source "
    "description next_pending_invoice_item_invoice on_behalf_of pending_invoice_item_interval "
    "pending_setup_intent pending_update schedule test_clock transfer_data"
)
_INVOICE_NULLS: Final = (
    "account_tax_ids application automatically_finalizes_at custom_fields customer_address customer_phone "
    "customer_shipping default_payment_method default_source description due_date footer from_invoice "
    "last_finalization_error latest_revision next_payment_attempt on_behalf_of receipt_number rendering shipping_cost "
    "shipping_details statement_descriptor test_clock threshold_reason"
)

_LINES_INCLUDED: Final = 10  # As in any list that an object includes.


def item_object(subscription: CardSubscription) -> Document:
    """Return the item of a subscription, which has the period."""
    return {
        "id": subscription.item_id,
        "object": "subscription_item",
        "created": unix(subscription.created_at),
        "current_period_end": unix(subscription.period_end),
        "current_period_start": unix(subscription.period_start),
        "discounts": [],
        "metadata": {},
        "plan": plan_object(subscription.price),
        "price": price_object(subscription.price),
        "quantity": subscription.quantity,
        "subscription": subscription.id,
        "tax_rates": [],
    }


def subscription_object(subscription: CardSubscription) -> Document:
    """Return a subscription."""
    is_cancelled = subscription.canceled_at is not None
    trial_start = subscription.created_at if subscription.trial_end is not None else None
    return {
        **dict.fromkeys(_SUBSCRIPTION_NULLS.split()),
        "id": subscription.id,
        "object": "subscription",
        "automatic_tax": {"disabled_reason": None, "enabled": False, "liability": None},
        "billing_cycle_anchor": unix(subscription.anchor_at),
        "cancel_at": unix(subscription.period_end) if subscription.cancel_at_period_end else None,
        "cancel_at_period_end": subscription.cancel_at_period_end,
        "canceled_at": unix(subscription.canceled_at),
        "cancellation_details": {
            "comment": None,
            "feedback": None,
            "reason": "cancellation_requested" if is_cancelled else None,
        },
        "collection_method": "charge_automatically",
        "created": unix(subscription.created_at),
        "currency": subscription.price.currency,
        "customer": subscription.customer_id,
        "default_payment_method": f"pm_{subscription.id.removeprefix('sub_')}",
        "default_tax_rates": [],
        "discounts": [],
        "ended_at": unix(subscription.ended_at),
        "invoice_settings": {"account_tax_ids": None, "issuer": {"account": None, "type": "self"}},
        "items": list_object(f"/v1/subscription_items?subscription={subscription.id}", [item_object(subscription)]),
        "latest_invoice": subscription.latest_invoice_id,
        "livemode": False,
        "metadata": dict(subscription.metadata),
        "pause_collection": pause_object(subscription),
        "payment_settings": {
            "payment_method_options": None,
            "payment_method_types": None,
            "save_default_payment_method": "off",
        },
        "start_date": unix(subscription.created_at),
        "status": subscription.status,
        "trial_end": unix(subscription.trial_end),
        "trial_settings": {"end_behavior": {"missing_payment_method": "create_invoice"}},
        "trial_start": unix(trial_start),
    }


def pause_object(subscription: CardSubscription) -> Document | None:
    """Return how the collection of payments is paused."""
    behavior = subscription.pause_behavior
    return None if behavior is None else {"behavior": behavior, "resumes_at": None}


def invoice_object(invoice: CardInvoice) -> Document:
    """Return an invoice; it names its subscription in `parent`."""
    is_paid, is_draft = invoice.status == "paid", invoice.status == "draft"
    created, finalized = unix(invoice.created_at), None if is_draft else unix(invoice.created_at)
    return {
        **dict.fromkeys(_INVOICE_NULLS.split()),
        "id": invoice.id,
        "object": "invoice",
        "account_country": "TN",
        "account_name": "Sandbox",
        "amount_due": invoice.amount_due,
        "amount_overpaid": 0,
        "amount_paid": invoice.amount_due if is_paid else 0,
        "amount_remaining": 0 if is_paid else invoice.amount_due,
        "amount_shipping": 0,
        "attempt_count": invoice.attempts_count,
        "attempted": invoice.status in {"open", "paid"},
        "auto_advance": invoice.status == "open",
        "automatic_tax": {"disabled_reason": None, "enabled": False, "liability": None, "status": None},
        "billing_reason": invoice.billing_reason,
        "collection_method": "charge_automatically",
        "created": created,
        "currency": invoice.currency,
        "customer": invoice.customer_id,
        "customer_email": invoice.customer_email,
        "customer_name": "Sandbox Payer",
        "customer_tax_exempt": "none",
        "customer_tax_ids": [],
        "default_tax_rates": [],
        "discounts": [],
        "effective_at": finalized,
        "ending_balance": 0,
        "hosted_invoice_url": None if is_draft else f"https://invoice.stripe.com/i/{invoice.id}",
        "invoice_pdf": None if is_draft else f"https://pay.stripe.com/invoice/{invoice.id}/pdf",
        "issuer": {"account": None, "type": "self"},
        "lines": lines_object(invoice, limit=_LINES_INCLUDED),
        "livemode": False,
        "metadata": {},
        "number": None if is_draft else invoice.number,
        "parent": {
            "quote_details": None,
            "subscription_details": {
                "metadata": dict(invoice.subscription_metadata),
                "subscription": invoice.subscription_id,
                "subscription_proration_date": None,
            },
            "type": "subscription_details",
        },
        "payment_settings": {
            "default_mandate": None,
            "payment_method_options": None,
            "payment_method_types": None,
        },
        "period_end": created,
        "period_start": created,
        "post_payment_credit_notes_amount": 0,
        "pre_payment_credit_notes_amount": 0,
        "starting_balance": 0,
        "status": invoice.status,
        "status_transitions": {
            "finalized_at": finalized,
            "marked_uncollectible_at": created if invoice.status == "uncollectible" else None,
            "paid_at": unix(invoice.paid_at),
            "voided_at": created if invoice.status == "void" else None,
        },
        "subtotal": invoice.total,
        "subtotal_excluding_tax": invoice.total,
        "total": invoice.total,
        "total_discount_amounts": [],
        "total_excluding_tax": invoice.total,
        "total_pretax_credit_amounts": [],
        "total_taxes": [],
        "webhooks_delivered_at": created,
    }


def lines_object(invoice: CardInvoice, *, limit: int) -> Document:
    """Return the first lines of an invoice."""
    lines = [line_object(invoice, line) for line in invoice.lines[:limit]]
    return list_object(f"/v1/invoices/{invoice.id}/lines", lines, has_more=len(invoice.lines) > limit)


def line_object(invoice: CardInvoice, line: CardInvoiceLine) -> Document:
    """Return a line of an invoice, with the period that it is about."""
    is_proration = line.proration_item_id is not None
    return {
        "id": line.id,
        "object": "line_item",
        "amount": line.amount,
        "currency": line.price.currency,
        "description": f"{line.quantity} × {line.price.name}",
        "discount_amounts": [],
        "discountable": not is_proration,
        "discounts": [],
        "invoice": invoice.id,
        "livemode": False,
        "metadata": dict(invoice.subscription_metadata),
        "parent": _proration_parent(invoice, line) if is_proration else _item_parent(invoice),
        "period": {"end": unix(line.period_end), "start": unix(line.period_start)},
        "pretax_credit_amounts": [],
        "pricing": {
            "price_details": {"price": line.price.id, "product": line.price.product_id},
            "type": "price_details",
            "unit_amount_decimal": str(line.price.unit_amount),
        },
        "quantity": line.quantity,
        "subscription": invoice.subscription_id,
        "taxes": [],
    }


def _item_parent(invoice: CardInvoice) -> Document:
    return {
        "invoice_item_details": None,
        "subscription_item_details": {
            "invoice_item": None,
            "proration": False,
            "proration_details": {"credited_items": None},
            "subscription": invoice.subscription_id,
            "subscription_item": invoice.item_id,
        },
        "type": "subscription_item_details",
    }


def _proration_parent(invoice: CardInvoice, line: CardInvoiceLine) -> Document:
    return {
        "invoice_item_details": {
            "invoice_item": line.proration_item_id,
            "proration": True,
            "proration_details": {"credited_items": None},
            "subscription": invoice.subscription_id,
        },
        "subscription_item_details": None,
        "type": "invoice_item_details",
    }
