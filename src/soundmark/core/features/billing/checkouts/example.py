"""Examples of a checkout."""

from typing import Final

from soundmark.core.domain.billing.checkout import Purchase, begin_checkout
from soundmark.core.edge.examples import ISSUED_AT, ORGANIZATION
from soundmark.core.features.billing.checkouts.wire import CheckoutList, CreatedCheckoutView, checkout_view

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
_CHECKOUT: Final = checkout_view(
    begin_checkout(
        ORGANIZATION.id, "bco_YS1jaGVja291dC1leGFtcG", _PURCHASE, key_digest=None, request_digest=None, now=ISSUED_AT
    ),
    ISSUED_AT,
)
CREATED: Final = CreatedCheckoutView(**dict(_CHECKOUT), checkout_url="https://pay.example.com/pay/4fJx0d2Q")
PENDING: Final = CheckoutList(data=[_CHECKOUT])
COMPLETED: Final = _CHECKOUT.model_copy(update={"status": "completed"})
EXPIRED: Final = _CHECKOUT.model_copy(update={"status": "expired"})
