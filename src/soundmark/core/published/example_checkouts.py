"""Genuine examples of a checkout and of the portal."""

from datetime import UTC, datetime
from typing import Any, Final

from soundmark.core.domain.billing.checkout import Purchase, begin_checkout
from soundmark.core.features.billing.checkouts.wire import CreatedCheckoutView, checkout_view
from soundmark.core.features.billing.portal.wire import PortalView

_AT: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
_PURCHASE: Final = Purchase(
    offer_id="offer_studio_local",
    plan_id="plan_codes_studio",
    product="codes",
    provider="local",
    price_reference=None,
    amount_minor=49_000,
    currency="TND",
    entitlement_months=1,
)


def example_checkouts(organization_id: str) -> dict[str, Any]:
    """Return the example responses by operation."""
    checkout = begin_checkout(
        organization_id, "bco_YS1jaGVja291dC1leGFtcG", _PURCHASE, key_digest=None, request_digest=None, now=_AT
    )
    view = checkout_view(checkout, _AT)
    return {
        "create_checkout": CreatedCheckoutView(**dict(view), checkout_url="https://pay.example.com/pay/4fJx0d2Q"),
        "get_checkout": view.model_copy(update={"status": "completed"}),
        "open_portal": PortalView(portal_url="https://billing.example.com/p/session/9dK2x0vT"),
    }
