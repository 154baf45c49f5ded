"""Examples of subscriptions and contracts."""

from datetime import UTC, datetime
from typing import Any, Final

from soundmark.core.domain.billing.accounting import AccountingState
from soundmark.core.domain.billing.catalog import CONTRACT_PLAN_ID, AudienceContract
from soundmark.core.domain.billing.subscription import ListedSubscription
from soundmark.core.features.billing.subscriptions.wire import SubscriptionPage, subscription_view
from soundmark.core.views.audience_contracts import audience_contract_view

_BEGAN_AT: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)


def example_subscriptions(organization_id: str) -> dict[str, Any]:
    """Return the responses of the operations on subscriptions and contracts, by operation id."""
    subscription = ListedSubscription(
        id="bsu_c3R1ZGlvLWEteWVhci1leG",
        plan_id="plan_codes_studio",
        plan_name="Codes Studio",
        product="codes",
        provider="card",
        status="active",
        current_period_end=datetime(2026, 12, 20, 10, tzinfo=UTC),
        paid_through=datetime(2026, 12, 20, 10, tzinfo=UTC),
        cancel_at_period_end=False,
        created_at=_BEGAN_AT,
    )
    contract = AudienceContract(
        organization_id=organization_id,
        plan_id=CONTRACT_PLAN_ID,
        contract_reference="2027-014",
        status="active",
        period_end=datetime(2028, 1, 1, tzinfo=UTC),
        updated_at=_BEGAN_AT,
    )
    return {
        "list_subscriptions": SubscriptionPage(
            data=[subscription_view(subscription, AccountingState("completed", 4711))], next_cursor=None
        ),
        "put_audience_contract": audience_contract_view(contract),
    }
