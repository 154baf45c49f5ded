"""The routes of webhook endpoints, their deliveries and their events."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, cast

from fastapi import Path, Query, Response

from soundmark.core.domain.webhooks.delivery import DeliveryStatus
from soundmark.core.domain.webhooks.event import render_body
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant
from soundmark.core.features.webhooks.endpoints import events, example, replays, service
from soundmark.core.features.webhooks.endpoints.wire import (
    CreateWebhookEndpoint,
    ReplayedView,
    ReplayWebhookEvents,
    UpdateWebhookEndpoint,
    WebhookDeliveryPage,
    WebhookDeliveryView,
    WebhookEndpointPage,
    WebhookEndpointView,
    WebhookEndpointWithSecret,
    WebhookMessage,
    endpoint_view,
    endpoint_with_secret,
)
from soundmark.core.problems import (
    ProjectNotFound,
    ResourceDeletionInProgress,
    WebhookEndpointNotFound,
    WebhookEventNotFound,
)
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor

operations = Operations("Webhooks")

EndpointIdPath = Annotated[ResourceId, Path(description="The endpoint's id.", examples=["whe_cGxheW91dC1leGFtcGxlLV"])]
EventIdPath = Annotated[ResourceId, Path(description="The event's id.", examples=["evn_Y29kZS1pc3N1ZWQtZXhhbXBs"])]


@operations.add(
    "POST",
    "/v1/webhook-endpoints",
    Operation("webhook_endpoint.create", tenant="body", problems=(ProjectNotFound, ResourceDeletionInProgress)),
    status=HTTPStatus.CREATED,
    example=endpoint_with_secret(example.ENDPOINT, example.SECRET),
)
async def create_webhook_endpoint(ctx: Ctx, scope: Tenant, body: CreateWebhookEndpoint) -> WebhookEndpointWithSecret:
    """Create a webhook endpoint. Its secret is returned only in this response. An organisation can have 20."""
    new = service.NewEndpoint(body.project_id, body.url, body.event_types, body.description)
    return endpoint_with_secret(*await service.create_endpoint(ctx, scope, new))


@operations.add(
    "GET",
    "/v1/webhook-endpoints",
    Operation("webhook_endpoint.read", problems=(InvalidCursor,)),
    example=WebhookEndpointPage(data=[endpoint_view(example.ENDPOINT)], next_cursor=None),
)
async def list_webhook_endpoints(
    ctx: Ctx, scope: Tenant, limit: Limit = LIMIT_DEFAULT, cursor: CursorText = None
) -> WebhookEndpointPage:
    """List the webhook endpoints of an organisation, newest first."""
    cursors = ctx.cursors.bind("webhook_endpoints", organization_id=scope.organization_id)
    page = await service.list_endpoints(ctx, scope, before=cursors.read(cursor), limit=limit)
    return cursors.show(WebhookEndpointPage, page, endpoint_view)


@operations.add(
    "GET",
    "/v1/webhook-endpoints/{endpoint_id}",
    Operation("webhook_endpoint.read", problems=(WebhookEndpointNotFound,)),
    example=endpoint_view(example.ENDPOINT),
)
async def get_webhook_endpoint(ctx: Ctx, scope: Tenant, endpoint_id: EndpointIdPath) -> WebhookEndpointView:
    """Return a webhook endpoint."""
    return endpoint_view(await service.get_endpoint(ctx, scope, endpoint_id))


@operations.add(
    "PATCH",
    "/v1/webhook-endpoints/{endpoint_id}",
    Operation("webhook_endpoint.change", problems=(WebhookEndpointNotFound,)),
    example=endpoint_view(replace(example.ENDPOINT, event_types=None)),
)
async def update_webhook_endpoint(
    ctx: Ctx, scope: Tenant, endpoint_id: EndpointIdPath, body: UpdateWebhookEndpoint
) -> WebhookEndpointView:
    """Change, enable or disable a webhook endpoint. A disabled endpoint receives no deliveries."""
    return endpoint_view(await service.update_endpoint(ctx, scope, endpoint_id, _changes_of(body)))


@operations.add(
    "DELETE",
    "/v1/webhook-endpoints/{endpoint_id}",
    Operation("webhook_endpoint.change", problems=(WebhookEndpointNotFound,)),
    status=HTTPStatus.NO_CONTENT,
)
async def delete_webhook_endpoint(ctx: Ctx, scope: Tenant, endpoint_id: EndpointIdPath) -> None:
    """Delete a webhook endpoint. Pending deliveries are dropped."""
    await service.delete_endpoint(ctx, scope, endpoint_id)


@operations.add(
    "POST",
    "/v1/webhook-endpoints/{endpoint_id}/secret",
    Operation("webhook_endpoint.change", problems=(WebhookEndpointNotFound,)),
    example=endpoint_with_secret(example.ENDPOINT, example.ROTATED),
)
async def rotate_webhook_secret(ctx: Ctx, scope: Tenant, endpoint_id: EndpointIdPath) -> WebhookEndpointWithSecret:
    """Rotate the secret of a webhook endpoint. Only this response has the new one. For 24 hours, both secrets sign."""
    return endpoint_with_secret(*await service.rotate_secret(ctx, scope, endpoint_id))


@operations.add(
    "GET",
    "/v1/webhook-endpoints/{endpoint_id}/deliveries",
    Operation("webhook_endpoint.read", problems=(WebhookEndpointNotFound, InvalidCursor)),
    example=WebhookDeliveryPage(data=[WebhookDeliveryView.from_record(example.DELIVERY)], next_cursor=None),
)
async def list_webhook_deliveries(
    ctx: Ctx,
    scope: Tenant,
    endpoint_id: EndpointIdPath,
    status: Annotated[
        DeliveryStatus | None, Query(description="Only deliveries with this status. Default: all.")
    ] = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> WebhookDeliveryPage:
    """List the deliveries to a webhook endpoint of the last 30 days, newest first."""
    cursors = ctx.cursors.bind(
        "webhook_deliveries", organization_id=scope.organization_id, endpoint_id=endpoint_id, status=status
    )
    page = await events.list_deliveries(
        ctx, scope, endpoint_id, status=status, before=cursors.read(cursor), limit=limit
    )
    return cursors.show(WebhookDeliveryPage, page, WebhookDeliveryView.from_record)


@operations.add(
    "POST",
    "/v1/webhook-endpoints/{endpoint_id}/replay",
    Operation("webhook_endpoint.change", problems=(WebhookEndpointNotFound, WebhookEventNotFound, RateLimited)),
    example=ReplayedView(replayed_count=3),
)
async def replay_webhook_events(
    ctx: Ctx, scope: Tenant, endpoint_id: EndpointIdPath, body: ReplayWebhookEvents
) -> ReplayedView:
    """Send events of the last 30 days again, with the same ids, even if they were delivered.

    Skips events that the endpoint does not match and events with a pending delivery to it. Includes events from before
    the endpoint existed. A disabled endpoint must be enabled first. An organisation can make 10 replays a minute and
    100,000 deliveries a UTC day; a replay over a limit sends nothing.
    """
    if "event_ids" in body.model_fields_set:
        count = await replays.replay_events(ctx, scope, endpoint_id, body.event_ids)
    else:
        count = await replays.replay_period(ctx, scope, endpoint_id, from_at=body.from_at, to_at=body.to_at)
    return ReplayedView(replayed_count=count)


@operations.add(
    "GET",
    "/v1/webhook-events/{event_id}",
    Operation("webhook_endpoint.read", problems=(WebhookEventNotFound,)),
    response_model=WebhookMessage,
    example=WebhookMessage.model_validate_json(render_body(example.EVENT)),
)
async def get_webhook_event(ctx: Ctx, scope: Tenant, event_id: EventIdPath) -> Response:
    """Return the message of an event of the last 30 days, byte for byte as it is sent."""
    return Response(render_body(await events.get_event(ctx, scope, event_id)), media_type="application/json")


def _changes_of(body: UpdateWebhookEndpoint) -> service.EndpointChanges:
    """Return the members that are present in the body."""
    return cast("service.EndpointChanges", {name: getattr(body, name) for name in body.model_fields_set})
