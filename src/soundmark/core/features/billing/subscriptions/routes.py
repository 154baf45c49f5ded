"""The route of subscriptions."""

from soundmark.core.domain.billing.accounting import NOT_SCHEDULED
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant
from soundmark.core.features.billing.subscriptions import example, service
from soundmark.core.features.billing.subscriptions.wire import SubscriptionPage, subscription_view
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor

operations = Operations("Billing")


@operations.add(
    "GET",
    "/v1/billing/subscriptions",
    Operation("subscription.list", problems=(InvalidCursor,)),
    example=SubscriptionPage(data=[example.SUBSCRIPTION], next_cursor=None),
)
async def list_subscriptions(
    ctx: Ctx, scope: Tenant, limit: Limit = LIMIT_DEFAULT, cursor: CursorText = None
) -> SubscriptionPage:
    """List the subscriptions of an organisation, newest first, whatever their status."""
    cursors = ctx.cursors.bind("subscriptions", organization_id=scope.organization_id)
    found = await service.list_subscriptions(ctx, scope, before=cursors.read(cursor), limit=limit)
    return cursors.show(
        SubscriptionPage, found.page, lambda each: subscription_view(each, found.accounting.get(each.id, NOT_SCHEDULED))
    )
