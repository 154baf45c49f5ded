"""Reading events and deliveries."""

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.delivery import DeliveryStatus, WebhookDelivery
from soundmark.core.domain.webhooks.event import WebhookEvent
from soundmark.core.problems import WebhookEndpointNotFound, WebhookEventNotFound
from soundmark.core.store.webhooks import deliveries, endpoints, events
from soundmark.kit.text.paging import Page, Position, cut_page


async def list_deliveries(
    ctx: Context,
    scope: TenantScope,
    endpoint_id: str,
    *,
    status: DeliveryStatus | None,
    before: Position | None,
    limit: int,
) -> Page[WebhookDelivery]:
    """Return the deliveries to an endpoint, newest first.

    Raises: WebhookEndpointNotFound.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        if await endpoints.find(tx, scope, endpoint_id) is None:
            raise WebhookEndpointNotFound
        rows = await deliveries.list_newest_first(tx, scope, endpoint_id, status=status, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))


async def get_event(ctx: Context, scope: TenantScope, event_id: str) -> WebhookEvent:
    """Return one event.

    Raises: WebhookEventNotFound.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        event = await events.find(tx, scope, event_id)
    if event is None:
        raise WebhookEventNotFound
    return event
