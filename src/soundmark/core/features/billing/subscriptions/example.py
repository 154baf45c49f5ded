"""The example of a subscription."""

from datetime import UTC, datetime
from typing import Final

from soundmark.core.domain.billing.accounting import AccountingState
from soundmark.core.domain.billing.subscription import ListedSubscription
from soundmark.core.edge.examples import ISSUED_AT
from soundmark.core.features.billing.subscriptions.wire import subscription_view

_PAID_THROUGH: Final = datetime(2026, 12, 20, 10, tzinfo=UTC)
SUBSCRIPTION: Final = subscription_view(
    ListedSubscription(
        id="bsu_c3R1ZGlvLWEteWVhci1leG",
        plan_id="plan_codes_studio",
        plan_name="Codes Studio",
        product="codes",
        provider="card",
        status="active",
        current_period_end=_PAID_THROUGH,
        paid_through=_PAID_THROUGH,
        cancel_at_period_end=False,
        created_at=ISSUED_AT,
    ),
    AccountingState("completed", 4711),
)
