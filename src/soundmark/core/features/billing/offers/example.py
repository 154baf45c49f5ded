"""The example of what is for sale: one plan of Codes, through both providers."""

from dataclasses import replace
from typing import Final

from soundmark.core.domain.billing.catalog import ListedOffer

_CARD_OFFER: Final = ListedOffer(
    id="offer_studio_card",
    plan_id="plan_codes_studio",
    plan_name="Codes Studio",
    product="codes",
    monthly_quota=5000,
    provider="card",
    country=None,
    currency="EUR",
    amount_minor=4900,
    price_interval="month",
    entitlement_months=None,
)
OFFERS: Final = (
    _CARD_OFFER,
    replace(
        _CARD_OFFER,
        id="offer_studio_local",
        provider="local",
        country="TN",
        currency="TND",
        amount_minor=149_000,
        price_interval=None,
        entitlement_months=1,
    ),
)
