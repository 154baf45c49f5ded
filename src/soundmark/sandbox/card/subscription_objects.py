"""The card provider's subscriptions and invoices, with every member that its SDK declares at basil."""

from typing import Final

from soundmark.sandbox.card.objects import Document, list_object, plan_object, price_object, unix
from soundmark.sandbox.card.records import CardInvoice, CardSubscription

# Members that a subscription sold by us always leaves empty.
_SUBSCRIPTION_NULLS: Final = (
    "application application_fee_percent billing_cycle_anchor_config cancel_at days_until_due default_source "
    "description next_pending_invoice_item_invoice on_behalf_of pause_collection pending_invoice_item_interval "
    "pending_setup_intent pending_update schedule test_clock transfer_data"
)
_INVOICE_NULLS: Final = (
    "account_tax_ids application automatically_finalizes_at custom_fields customer_address customer_phone "
    "customer_shipping default_payment_method default_source description due_date footer from_invoice "
    "last_finalization_error latest_revision next_payment_attempt on_behalf_of receipt_number rendering shipping_cost "
    "shipping_details statement_descriptor test_clock threshold_reason"
)


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


def invoice_object(invoice: CardInvoice) -> Document:
    """Return an invoice; it names its subscription in `parent`."""
    is_paid = invoice.status == "paid"
    return {
        **dict.fromkeys(_INVOICE_NULLS.split()),
        "id": invoice.id,
        "object": "invoice",
        "account_country": "TN",
        "account_name": "Sandbox",
        "amount_due": invoice.amount,
        "amount_overpaid": 0,
        "amount_paid": invoice.amount if is_paid else 0,
        "amount_remaining": 0 if is_paid else invoice.amount,
        "amount_shipping": 0,
        "attempt_count": invoice.attempts_count,
        "attempted": True,
        "auto_advance": not is_paid,
        "automatic_tax": {"disabled_reason": None, "enabled": False, "liability": None, "status": None},
        "billing_reason": invoice.billing_reason,
        "collection_method": "charge_automatically",
        "created": unix(invoice.created_at),
        "currency": invoice.price.currency,
        "customer": invoice.customer_id,
        "customer_email": invoice.customer_email,
        "customer_name": "Sandbox Payer",
        "customer_tax_exempt": "none",
        "customer_tax_ids": [],
        "default_tax_rates": [],
        "discounts": [],
        "effective_at": unix(invoice.created_at),
        "ending_balance": 0,
        "hosted_invoice_url": f"https://invoice.stripe.com/i/{invoice.id}",
        "invoice_pdf": f"https://pay.stripe.com/invoice/{invoice.id}/pdf",
        "issuer": {"account": None, "type": "self"},
        "lines": list_object(f"/v1/invoices/{invoice.id}/lines", [line_object(invoice)]),
        "livemode": False,
        "metadata": {},
        "number": invoice.number,
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
        "period_end": unix(invoice.created_at),
        "period_start": unix(invoice.created_at),
        "post_payment_credit_notes_amount": 0,
        "pre_payment_credit_notes_amount": 0,
        "starting_balance": 0,
        "status": invoice.status,
        "status_transitions": {
            "finalized_at": unix(invoice.created_at),
            "marked_uncollectible_at": None,
            "paid_at": unix(invoice.paid_at),
            "voided_at": None,
        },
        "subtotal": invoice.amount,
        "subtotal_excluding_tax": invoice.amount,
        "total": invoice.amount,
        "total_discount_amounts": [],
        "total_excluding_tax": invoice.amount,
        "total_pretax_credit_amounts": [],
        "total_taxes": [],
        "webhooks_delivered_at": unix(invoice.created_at),
    }


def line_object(invoice: CardInvoice) -> Document:
    """Return the only line of an invoice, which has the period that was paid."""
    return {
        "id": invoice.line_id,
        "object": "line_item",
        "amount": invoice.amount,
        "currency": invoice.price.currency,
        "description": f"{invoice.quantity} × {invoice.price.name}",
        "discount_amounts": [],
        "discountable": True,
        "discounts": [],
        "invoice": invoice.id,
        "livemode": False,
        "metadata": dict(invoice.subscription_metadata),
        "parent": {
            "invoice_item_details": None,
            "subscription_item_details": {
                "invoice_item": None,
                "proration": False,
                "proration_details": {"credited_items": None},
                "subscription": invoice.subscription_id,
                "subscription_item": invoice.item_id,
            },
            "type": "subscription_item_details",
        },
        "period": {"end": unix(invoice.period_end), "start": unix(invoice.period_start)},
        "pretax_credit_amounts": [],
        "pricing": {
            "price_details": {"price": invoice.price.id, "product": invoice.price.product_id},
            "type": "price_details",
            "unit_amount_decimal": str(invoice.price.unit_amount),
        },
        "quantity": invoice.quantity,
        "subscription": invoice.subscription_id,
        "taxes": [],
    }
