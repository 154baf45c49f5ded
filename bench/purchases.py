"""Purchases to notify Core of: rows of checkouts, and the card provider's objects of the same numbers."""

import hashlib
import hmac
import json
import time
from typing import Any, Final

import psycopg

from bench import seed
from soundmark.kit.crypto.secret import Secret

CARD_SECRET: Final = "sk_test_of_the_benchmark"
WEBHOOK_SECRET: Final = "whsec_of_the_benchmark"
ORGANIZATIONS: Final = 500  # Purchases of one organisation wait for each other.
_PERIOD_S: Final = 30 * 24 * 60 * 60
_OFFER: Final = "offer_bench"
_PRICE: Final = "price_bench"


def seed_checkouts(url: Secret, count: int) -> None:
    """Store an offer, organisations, and pending checkouts with the numbers below `count`."""
    seed.seed_organizations(url, ORGANIZATIONS)
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO offers (id, plan_id, provider, active, price_reference, price_status, updated_at)"
            " VALUES (%s, 'plan_bench', 'card', true, %s, 'unknown', now())",
            (_OFFER, _PRICE),
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO checkouts (organization_id, id, offer_id, plan_id, product, provider, status,"
                " price_reference, provider_reference, created_at, expires_at)"
                " VALUES (%s, %s, %s, 'plan_bench', 'codes', 'card', 'pending', %s, %s, now(),"
                " now() + interval '1 day')",
                [
                    (organization_of(number), checkout_id_of(number), _OFFER, _PRICE, f"cs_bench_{number}")
                    for number in range(count)
                ],
            )
        connection.execute("VACUUM ANALYZE checkouts")


def organization_of(number: int) -> str:
    """Return the organisation of a purchase."""
    return seed.organization_id_of(number % ORGANIZATIONS)


def checkout_id_of(number: int) -> str:
    """Return the id of a purchase's checkout."""
    return f"bco_{number:022d}"


def subscription_of(number: int, now_s: int) -> dict[str, Any]:
    """Return a subscription as the provider has it, with the members that it really has of those that matter."""
    period = {"current_period_start": now_s, "current_period_end": now_s + _PERIOD_S}
    metadata = _metadata_of(number)
    return {
        "id": f"sub_bench_{number}",
        "object": "subscription",
        "status": "active",
        "items": {"object": "list", "data": [{"id": "si_1", "price": {"id": _PRICE}, **period}]},
        "cancel_at_period_end": False,
        "customer": f"cus_bench_{number}",
        "metadata": metadata,
        "latest_invoice": {
            "id": f"in_bench_{number}",
            "object": "invoice",
            "status": "paid",
            "amount_paid": 10_555,
            "currency": "tnd",
            "created": now_s,
            "parent": {"subscription_details": {"subscription": f"sub_bench_{number}", "metadata": metadata}},
            "lines": {"object": "list", "data": [_line_of(number, now_s)]},
        },
    }


def _line_of(number: int, now_s: int) -> dict[str, Any]:
    details = {"subscription": f"sub_bench_{number}", "subscription_item": "si_1", "proration": False}
    return {
        "id": "il_1",
        "object": "line_item",
        "amount": 10_555,
        "parent": {"type": "subscription_item_details", "subscription_item_details": details},
        "period": {"start": now_s, "end": now_s + _PERIOD_S},
        "pricing": {"type": "price_details", "price_details": {"price": _PRICE, "product": "prod_bench"}},
    }


def sign_event(number: int) -> tuple[bytes, str]:
    """Return the body of a purchase's event, and its signature as of now."""
    now_s = int(time.time())
    event = {
        "id": f"evt_bench_{number}",
        "object": "event",
        "type": "customer.subscription.created",
        "created": now_s,
        "data": {"object": subscription_of(number, now_s)},
    }
    body = json.dumps(event).encode()
    digest = hmac.new(WEBHOOK_SECRET.encode(), f"{now_s}.".encode() + body, hashlib.sha256).hexdigest()
    return body, f"t={now_s},v1={digest}"


def _metadata_of(number: int) -> dict[str, str]:
    return {
        "svc_checkout_id": checkout_id_of(number),
        "svc_organization_id": organization_of(number),
        "svc_offer_id": _OFFER,
    }
