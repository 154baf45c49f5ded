"""The card provider's objects at API version 2025-03-31.basil, with every member that its SDK declares.

Members that appear only when they are expanded, such as a session's `line_items`, are left out.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from soundmark.sandbox.card.records import CardCustomer, CheckoutSession, PortalSession, Price

Document = dict[str, Any]

BASIL: Final = "2025-03-31.basil"
CONFIGURATION: Final = "bpc_sandbox"

# Members that a subscription sold by us always leaves empty.
_SESSION_NULLS: Final = (
    "adaptive_pricing after_expiration allow_promotion_codes billing_address_collection client_secret "
    "collected_information consent consent_collection currency_conversion invoice_creation locale optional_items "
    "payment_intent payment_link payment_method_configuration_details permissions presentment_details recovered_from "
    "redirect_on_completion return_url setup_intent shipping_address_collection shipping_cost submit_type"
)
_CUSTOMER_NULLS: Final = "address default_source description discount name phone shipping test_clock"


def unix(moment: datetime | None) -> int | None:
    """Return a time as the provider writes it."""
    return None if moment is None else int(moment.timestamp())


def list_object(url: str, items: Sequence[Document], *, has_more: bool = False) -> Document:
    """Return a list of objects."""
    return {"object": "list", "data": list(items), "has_more": has_more, "url": url}


def price_object(price: Price) -> Document:
    """Return a price."""
    return {
        "id": price.id,
        "object": "price",
        "active": price.is_active,
        "billing_scheme": "per_unit",
        "created": unix(price.created_at),
        "currency": price.currency,
        "custom_unit_amount": None,
        "livemode": False,
        "lookup_key": None,
        "metadata": {},
        "nickname": None,
        "product": price.product_id,
        "recurring": {
            "interval": price.interval,
            "interval_count": 1,
            "meter": None,
            "trial_period_days": None,
            "usage_type": "licensed",
        },
        "tax_behavior": "unspecified",
        "tiers_mode": None,
        "transform_quantity": None,
        "type": "recurring",
        "unit_amount": price.unit_amount,
        "unit_amount_decimal": str(price.unit_amount),
    }


def plan_object(price: Price) -> Document:
    """Return a price in the form that came before prices."""
    return {
        "id": price.id,
        "object": "plan",
        "active": price.is_active,
        "amount": price.unit_amount,
        "amount_decimal": str(price.unit_amount),
        "billing_scheme": "per_unit",
        "created": unix(price.created_at),
        "currency": price.currency,
        "interval": price.interval,
        "interval_count": 1,
        "livemode": False,
        "metadata": {},
        "meter": None,
        "nickname": None,
        "product": price.product_id,
        "tiers_mode": None,
        "transform_usage": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    }


def product_object(price: Price) -> Document:
    """Return the product of a price."""
    return {
        "id": price.product_id,
        "object": "product",
        "active": True,
        "created": unix(price.created_at),
        "default_price": price.id,
        "description": None,
        "images": [],
        "livemode": False,
        "marketing_features": [],
        "metadata": {},
        "name": price.name,
        "package_dimensions": None,
        "shippable": None,
        "statement_descriptor": None,
        "tax_code": None,
        "type": "service",
        "unit_label": None,
        "updated": unix(price.created_at),
        "url": None,
    }


def customer_object(customer: CardCustomer) -> Document:
    """Return a customer."""
    return {
        **dict.fromkeys(_CUSTOMER_NULLS.split()),
        "id": customer.id,
        "object": "customer",
        "balance": 0,
        "created": unix(customer.created_at),
        "currency": None,
        "delinquent": False,
        "email": customer.email,
        "invoice_prefix": customer.id[-8:].upper(),
        "invoice_settings": {
            "custom_fields": None,
            "default_payment_method": None,
            "footer": None,
            "rendering_options": None,
        },
        "livemode": False,
        "metadata": {},
        "next_invoice_sequence": 1,
        "preferred_locales": [],
        "tax_exempt": "none",
    }


def session_object(session: CheckoutSession, payer: CardCustomer | None) -> Document:
    """Return a checkout session; `payer` is its customer once there is one."""
    is_open = session.status == "open"
    email = session.customer_email if payer is None else payer.email
    return {
        **dict.fromkeys(_SESSION_NULLS.split()),
        "id": session.id,
        "object": "checkout.session",
        "amount_subtotal": session.amount,
        "amount_total": session.amount,
        "automatic_tax": {"enabled": False, "liability": None, "status": None},
        "cancel_url": session.cancel_url,
        "client_reference_id": session.client_reference_id,
        "created": unix(session.created_at),
        "currency": session.price.currency,
        "custom_fields": [],
        "custom_text": dict.fromkeys(("after_submit", "shipping_address", "submit", "terms_of_service_acceptance")),
        "customer": session.customer_id,
        "customer_creation": "always" if session.customer_id is None else None,
        "customer_details": None if email is None else _customer_details(email),
        "customer_email": session.customer_email,
        "discounts": [],
        "expires_at": unix(session.expires_at),
        "invoice": session.invoice_id,
        "livemode": False,
        "metadata": dict(session.metadata),
        "mode": "subscription",
        "payment_method_collection": "always",
        "payment_method_options": {"card": {"request_three_d_secure": "automatic"}},
        "payment_method_types": ["card"],
        "payment_status": session.payment_status,
        "phone_number_collection": {"enabled": False},
        "saved_payment_method_options": {
            "allow_redisplay_filters": ["always"],
            "payment_method_remove": "disabled",
            "payment_method_save": None,
        },
        "shipping_options": [],
        "status": session.status,
        "subscription": session.subscription_id,
        "success_url": session.success_url,
        "tax_id_collection": {"enabled": False, "required": "never"},
        "total_details": {"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0},
        "ui_mode": "hosted",
        "url": session.url if is_open else None,
    }


def _customer_details(email: str) -> Document:
    return {
        "address": {**dict.fromkeys(("city", "line1", "line2", "postal_code", "state")), "country": "TN"},
        "email": email,
        "name": "Sandbox Payer",
        "phone": None,
        "tax_exempt": "none",
        "tax_ids": [],
    }


def portal_object(session: PortalSession) -> Document:
    """Return a portal session."""
    return {
        "id": session.id,
        "object": "billing_portal.session",
        "configuration": CONFIGURATION,
        "created": unix(session.created_at),
        "customer": session.customer_id,
        "flow": None,
        "livemode": False,
        "locale": session.locale,
        "on_behalf_of": None,
        "return_url": session.return_url,
        "url": session.url,
    }


def event_object(
    event_id: str, event_type: str, created_at: datetime, data: Mapping[str, Any], *, api_version: str
) -> Document:
    """Return an event; `data` holds the object, and what was different before."""
    return {
        "id": event_id,
        "object": "event",
        "api_version": api_version,
        "created": unix(created_at),
        "data": dict(data),
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None},
        "type": event_type,
    }
