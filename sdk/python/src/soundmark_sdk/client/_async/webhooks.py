"""Webhook endpoints: where the service sends an organisation's events."""

from collections.abc import AsyncIterator, Collection
from datetime import datetime
from typing import Any

from soundmark_sdk.client._async.group import AsyncGroup
from soundmark_sdk.client.calls import PAGE_SIZE_MAX, Call, make_call, make_get, quote_id
from soundmark_sdk.client.records import (
    DeliveryStatus,
    Page,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEndpointWithSecret,
    WebhookEvent,
    WebhookReplay,
    WebhookTest,
)
from soundmark_sdk.client.requests import UNCHANGED, Unchanged, write_time

_ENDPOINTS = "/v1/webhook-endpoints"


class AsyncWebhooks(AsyncGroup):
    """The webhook endpoints of an organisation. An API key may call none of these.

    `soundmark_sdk.webhooks.verify` verifies the messages that an endpoint gets.
    """

    async def create(
        self,
        url: str,
        *,
        event_types: Collection[str] | None = None,
        description: str | None = None,
        project_id: str | None = None,
        organization_id: str | None = None,
    ) -> WebhookEndpointWithSecret:
        """Create an endpoint. Only this response contains its secret.

        `event_types` None means all. `project_id` None means the organisation and all its projects, even if the client
        has a project.
        """
        document: dict[str, Any] = {
            **await self._sender.choose_organization(organization_id),
            "project_id": project_id,
            "url": url,
            "event_types": _write_types(event_types),
        }
        if description is not None:
            document["description"] = description
        return await self._sender.call(WebhookEndpointWithSecret, make_call("POST", _ENDPOINTS, document))

    async def get(self, endpoint_id: str, *, organization_id: str | None = None) -> WebhookEndpoint:
        """Return one endpoint."""
        tenant = await self._sender.choose_organization(organization_id)
        return await self._sender.call(WebhookEndpoint, make_get(_path(endpoint_id), **tenant))

    async def update(
        self,
        endpoint_id: str,
        *,
        url: str | Unchanged = UNCHANGED,
        event_types: Collection[str] | Unchanged | None = UNCHANGED,
        description: str | Unchanged | None = UNCHANGED,
        enabled: bool | Unchanged = UNCHANGED,
        organization_id: str | None = None,
    ) -> WebhookEndpoint:
        """Change an endpoint. Enabling it clears the reason why it was disabled; `replay` sends missed events."""
        types = event_types if isinstance(event_types, Unchanged) else _write_types(event_types)
        changes = {"url": url, "event_types": types, "description": description, "enabled": enabled}
        document = {member: value for member, value in changes.items() if not isinstance(value, Unchanged)}
        tenant = await self._sender.choose_organization(organization_id)
        call = make_call("PATCH", _path(endpoint_id), document, is_repeatable=True, **tenant)
        return await self._sender.call(WebhookEndpoint, call)

    async def delete(self, endpoint_id: str, *, organization_id: str | None = None) -> None:
        """Delete an endpoint, and all its deliveries with it."""
        tenant = await self._sender.choose_organization(organization_id)
        await self._sender.execute(make_call("DELETE", _path(endpoint_id), is_repeatable=False, **tenant))

    async def rotate_secret(self, endpoint_id: str, *, organization_id: str | None = None) -> WebhookEndpointWithSecret:
        """Give an endpoint a new secret. The previous secret also signs for 24 hours."""
        tenant = await self._sender.choose_organization(organization_id)
        call = make_call("POST", f"{_path(endpoint_id)}/secret", is_repeatable=False, **tenant)
        return await self._sender.call(WebhookEndpointWithSecret, call)

    async def test(self, endpoint_id: str, *, organization_id: str | None = None) -> WebhookTest:
        """Send a test message to an endpoint, even a disabled one, and return the result."""
        tenant = await self._sender.choose_organization(organization_id)
        call = make_call("POST", f"{_path(endpoint_id)}/test", is_repeatable=False, **tenant)
        return await self._sender.call(WebhookTest, call)

    async def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[WebhookEndpoint]:
        """Return one page of an organisation's endpoints."""
        tenant = await self._sender.choose_organization(organization_id)
        return await self._sender.get_page(WebhookEndpoint, make_get(_ENDPOINTS, **tenant, limit=limit, cursor=cursor))

    async def list(
        self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX
    ) -> AsyncIterator[WebhookEndpoint]:
        """Yield every endpoint of an organisation."""
        tenant = await self._sender.choose_organization(organization_id)
        async for endpoint in self._sender.iterate(WebhookEndpoint, make_get(_ENDPOINTS, **tenant, limit=page_size)):
            yield endpoint

    async def deliveries_page(
        self,
        endpoint_id: str,
        *,
        status: DeliveryStatus | None = None,
        organization_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[WebhookDelivery]:
        """Return one page of the deliveries to an endpoint in the last 30 days."""
        call = await self._list_deliveries(endpoint_id, status, organization_id, limit, cursor)
        return await self._sender.get_page(WebhookDelivery, call)

    async def deliveries(
        self,
        endpoint_id: str,
        *,
        status: DeliveryStatus | None = None,
        organization_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> AsyncIterator[WebhookDelivery]:
        """Yield every delivery to an endpoint in the last 30 days."""
        call = await self._list_deliveries(endpoint_id, status, organization_id, page_size, None)
        async for delivery in self._sender.iterate(WebhookDelivery, call):
            yield delivery

    async def get_event(self, event_id: str, *, organization_id: str | None = None) -> WebhookEvent:
        """Return an event of the last 30 days, as it is sent."""
        tenant = await self._sender.choose_organization(organization_id)
        return await self._sender.call(WebhookEvent, make_get(f"/v1/webhook-events/{quote_id(event_id)}", **tenant))

    async def replay(
        self, endpoint_id: str, *, from_at: datetime, to_at: datetime, organization_id: str | None = None
    ) -> WebhookReplay:
        """Deliver the events of a period that match an endpoint again; `to_at` is exclusive.

        Events with a pending delivery to the endpoint are skipped. An organisation can make 10 replays a minute and
        100,000 deliveries a UTC day; a replay over a limit is refused and sends nothing.
        """
        document = {"from": write_time(from_at), "to": write_time(to_at)}
        return await self._replay(endpoint_id, document, organization_id)

    async def replay_events(
        self, endpoint_id: str, event_ids: Collection[str], *, organization_id: str | None = None
    ) -> WebhookReplay:
        """Deliver up to 100 events again, if they match the endpoint, within the limits of `replay`."""
        return await self._replay(endpoint_id, {"event_ids": [*event_ids]}, organization_id)

    async def _replay(self, endpoint_id: str, document: dict[str, Any], organization_id: str | None) -> WebhookReplay:
        tenant = await self._sender.choose_organization(organization_id)
        call = make_call("POST", f"{_path(endpoint_id)}/replay", document, is_repeatable=False, **tenant)
        return await self._sender.call(WebhookReplay, call)

    async def _list_deliveries(
        self,
        endpoint_id: str,
        status: DeliveryStatus | None,
        organization_id: str | None,
        limit: int,
        cursor: str | None,
    ) -> Call:
        tenant = await self._sender.choose_organization(organization_id)
        return make_get(f"{_path(endpoint_id)}/deliveries", **tenant, status=status, limit=limit, cursor=cursor)


def _path(endpoint_id: str) -> str:
    return f"{_ENDPOINTS}/{quote_id(endpoint_id)}"


def _write_types(event_types: Collection[str] | None) -> list[str] | None:
    return None if event_types is None else sorted(event_types)
