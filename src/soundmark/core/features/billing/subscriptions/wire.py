"""The response shapes of subscriptions."""

from soundmark.core.domain.billing.accounting import AccountingState, AccountingStatus
from soundmark.core.domain.billing.catalog import Product
from soundmark.core.domain.billing.subscription import ListedSubscription, SubscriptionProvider, SubscriptionStatus
from soundmark.wire.shape import Timestamp, Wire


class AccountingView(Wire):
    """The newest draft invoice of a subscription. `invoice_id` is null unless the status is `completed`."""

    status: AccountingStatus
    invoice_id: int | None


class SubscriptionView(Wire):
    """What an organisation has bought, or was granted by contract; without anything of the payment itself.

    `current_period_end` is when the provider tries to renew; what entitles is `paid_through`. If that is null, nothing
    was paid of a card subscription yet, and a contract has no end.
    """

    id: str
    plan_id: str
    plan_name: str
    product: Product
    provider: SubscriptionProvider
    status: SubscriptionStatus
    current_period_end: Timestamp | None
    paid_through: Timestamp | None
    cancel_at_period_end: bool
    created_at: Timestamp
    accounting: AccountingView


class SubscriptionPage(Wire):
    """Subscriptions, newest first."""

    data: list[SubscriptionView]
    next_cursor: str | None


def subscription_view(subscription: ListedSubscription, accounting: AccountingState) -> SubscriptionView:
    """Return the view of one subscription."""
    return SubscriptionView.from_record(subscription, accounting=AccountingView.from_record(accounting))
