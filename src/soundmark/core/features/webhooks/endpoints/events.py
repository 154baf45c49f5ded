"""Reading events and deliveries, and sending events again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.delivery import DeliveryStatus, WebhookDelivery
from soundmark.core.domain.webhooks.endpoint import Endpoint
from soundmark.core.domain.webhooks.event import WebhookEvent
from soundmark.core.problems import WebhookEndpointNotFound, WebhookEventNotFound
from soundmark.core.steps.tenancy import hold_authority
from soundmark.core.store.webhooks import deliveries, endpoints, events
from soundmark.kit.http.problems import FieldError, ValidationFailed
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.kit.text.paging import Page, Position, cut_page

# For the statement that replays, instead of the usual 30 s: a month may hold millions of events, of which a hundred
# thousand take about two seconds.
_REPLAY_TIMEOUT_S: Final = 600


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


async def replay_period(
    ctx: Context, scope: TenantScope, endpoint_id: str, *, from_at: datetime, to_at: datetime
) -> int:
    """Send again what the endpoint matches of the events from `from_at` until before `to_at`; return their number.

    Raises: ValidationFailed for a period without length, and for a disabled endpoint; WebhookEndpointNotFound.
    Source: contract, section 9.
    """
    if from_at >= to_at:
        raise ValidationFailed(errors=(FieldError("body", "/to", "must be after from"),))
    async with ctx.db.transaction(tenant=scope.organization_id, statement_timeout_s=_REPLAY_TIMEOUT_S) as tx:
        endpoint = await _require_enabled(tx, scope, endpoint_id)
        return await deliveries.insert_replayed_period(
            tx, scope, endpoint.id, replay_id=mint(ctx.entropy, ""), from_at=from_at, to_at=to_at, now=ctx.clock.now()
        )


async def replay_events(ctx: Context, scope: TenantScope, endpoint_id: str, event_ids: Sequence[str]) -> int:
    """Send again those of the events that the endpoint matches; return their number.

    Raises: ValidationFailed for a disabled endpoint; WebhookEndpointNotFound; WebhookEventNotFound if any is missing,
        before any is sent.
    Source: contract, section 9.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        endpoint = await _require_enabled(tx, scope, endpoint_id)
        if await events.count_of(tx, scope, event_ids) < len(event_ids):
            raise WebhookEventNotFound
        return await deliveries.insert_replayed(
            tx, scope, endpoint.id, replay_id=mint(ctx.entropy, ""), event_ids=event_ids, now=ctx.clock.now()
        )


async def _require_enabled(tx: Tx, scope: TenantScope, endpoint_id: str) -> Endpoint:
    """Return an endpoint that may get deliveries.

    A disabled endpoint gets none. To count them as replayed, or to keep them for the day on which it is enabled, would
    surprise the caller, who has to enable it first.
    """
    await hold_authority(tx, scope)
    endpoint = await endpoints.find(tx, scope, endpoint_id)
    if endpoint is None:
        raise WebhookEndpointNotFound
    if not endpoint.enabled:
        raise ValidationFailed("This webhook endpoint is disabled. Enable it, then replay what it missed.")
    return endpoint
