"""A genuine example of a catalogue: a plan of Codes for sale through both providers, and a contract."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from soundmark.core.domain.billing.catalog import (
    CONTRACT_PLAN_ID,
    AccountingCustomer,
    AudienceContract,
    Catalog,
    Offer,
    PaymentProvider,
    Plan,
)
from soundmark.core.domain.codes.quota import STARTER_PLAN_ID
from soundmark.core.edge.examples import ISSUED_AT, ORGANIZATION

CARD: Final = PaymentProvider("card", enabled=True, updated_at=ISSUED_AT)
_STARTER: Final = Plan(STARTER_PLAN_ID, "Codes Starter", "codes", 100, None, active=True, updated_at=ISSUED_AT)
_CONTRACT_PLAN: Final = Plan(
    CONTRACT_PLAN_ID, "Audience Contract", "audience", None, 5000, active=True, updated_at=ISSUED_AT
)
PLAN: Final = replace(_STARTER, id="plan_codes_studio", name="Codes Studio", monthly_code_quota=5000)
CARD_OFFER: Final = Offer(
    id="offer_studio_card",
    plan_id=PLAN.id,
    provider="card",
    active=True,
    price_reference="price_1PexampleOfAPrice",
    country=None,
    currency="EUR",
    amount_minor=4900,
    price_interval="month",
    entitlement_months=None,
    price_read_at=ISSUED_AT,
    updated_at=ISSUED_AT,
    price_status="known",
)
CATALOG: Final = Catalog(
    providers=[CARD, replace(CARD, name="local")],
    plans=[_CONTRACT_PLAN, _STARTER, PLAN],
    offers=[
        CARD_OFFER,
        replace(
            CARD_OFFER,
            id="offer_studio_local",
            provider="local",
            price_reference=None,
            country="TN",
            currency="TND",
            amount_minor=149_000,
            price_interval=None,
            entitlement_months=1,
            price_read_at=None,
            price_status=None,
        ),
    ],
    audience_contracts=[
        AudienceContract(
            organization_id=ORGANIZATION.id,
            plan_id=CONTRACT_PLAN_ID,
            contract_reference="C-2026-041",
            status="active",
            period_end=datetime(2028, 1, 1, tzinfo=UTC),
            updated_at=ISSUED_AT,
        )
    ],
    accounting_customers=[
        AccountingCustomer(ORGANIZATION.id, ORGANIZATION.name, thirdparty_id=17, updated_at=ISSUED_AT)
    ],
)
