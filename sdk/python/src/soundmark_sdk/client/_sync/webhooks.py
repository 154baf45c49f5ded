# Generated from `../_async/webhooks.py` by `make_blocking.py`: change that file, then run this program.
"""Webhook endpoints: where the service sends an organisation's events."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from soundmark_sdk.client._sync.group import Group
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


class Webhooks(Group):
    """The webhook endpoints of an organisation. An API key may call none of these.

    `soundmark_sdk.webhooks.verify` verifies the messages that an endpoint gets.
    """

    def create(
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
            **self._sender.choose_organization(organization_id),
            "project_id": project_id,
            "url": url,
            "event_types": _write_types(event_types),
        }
        if description is not None:
            document["description"] = description
        return self._sender.call(WebhookEndpointWithSecret, make_call("POST", _ENDPOINTS, document))

    def get(self, endpoint_id: str, *, organization_id: str | None = None) -> WebhookEndpoint:
        """Return one endpoint."""
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(WebhookEndpoint, make_get(_path(endpoint_id), **tenant))

    def update(
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
        tenant = self._sender.choose_organization(organization_id)
        call = make_call("PATCH", _path(endpoint_id), document, is_repeatable=True, **tenant)
        return self._sender.call(WebhookEndpoint, call)

    def delete(self, endpoint_id: str, *, organization_id: str | None = None) -> None:
        """Delete an endpoint, and all its deliveries with it."""
        tenant = self._sender.choose_organization(organization_id)
        self._sender.execute(make_call("DELETE", _path(endpoint_id), is_repeatable=False, **tenant))

    def rotate_secret(self, endpoint_id: str, *, organization_id: str | None = None) -> WebhookEndpointWithSecret:
        """Give an endpoint a new secret. The previous secret also signs for 24 hours."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_call("POST", f"{_path(endpoint_id)}/secret", is_repeatable=False, **tenant)
        return self._sender.call(WebhookEndpointWithSecret, call)

    def test(self, endpoint_id: str, *, organization_id: str | None = None) -> WebhookTest:
        """Send a test message to an endpoint, even a disabled one, and return the result."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_call("POST", f"{_path(endpoint_id)}/test", is_repeatable=False, **tenant)
        return self._sender.call(WebhookTest, call)

    def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[WebhookEndpoint]:
        """Return one page of an organisation's endpoints."""
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.get_page(WebhookEndpoint, make_get(_ENDPOINTS, **tenant, limit=limit, cursor=cursor))

    def list(self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX) -> Iterator[WebhookEndpoint]:
        """Yield every endpoint of an organisation."""
        tenant = self._sender.choose_organization(organization_id)
        yield from self._sender.iterate(WebhookEndpoint, make_get(_ENDPOINTS, **tenant, limit=page_size))

    def deliveries_page(
        self,
        endpoint_id: str,
        *,
        status: DeliveryStatus | None = None,
        organization_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[WebhookDelivery]:
        """Return one page of the deliveries to an endpoint in the last 30 days."""
        call = self._list_deliveries(endpoint_id, status, organization_id, limit, cursor)
        return self._sender.get_page(WebhookDelivery, call)

    def deliveries(
        self,
        endpoint_id: str,
        *,
        status: DeliveryStatus | None = None,
        organization_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[WebhookDelivery]:
        """Yield every delivery to an endpoint in the last 30 days."""
        call = self._list_deliveries(endpoint_id, status, organization_id, page_size, None)
        yield from self._sender.iterate(WebhookDelivery, call)

    def get_event(self, event_id: str, *, organization_id: str | None = None) -> WebhookEvent:
        """Return an event of the last 30 days, as it is sent."""
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(WebhookEvent, make_get(f"/v1/webhook-events/{quote_id(event_id)}", **tenant))

    def replay(
        self, endpoint_id: str, *, from_at: datetime, to_at: datetime, organization_id: str | None = None
    ) -> WebhookReplay:
        """Deliver the events of a period that match an endpoint again; `to_at` is exclusive.

        Events with a pending delivery to the endpoint are skipped. An organisation can make 10 replays a minute and
        100,000 deliveries a UTC day; a replay over a limit is refused and sends nothing.
        """
        document = {"from": write_time(from_at), "to": write_time(to_at)}
        return self._replay(endpoint_id, document, organization_id)

    def replay_events(
        self, endpoint_id: str, event_ids: Collection[str], *, organization_id: str | None = None
    ) -> WebhookReplay:
        """Deliver up to 100 events again, if they match the endpoint, within the limits of `replay`."""
        return self._replay(endpoint_id, {"event_ids": [*event_ids]}, organization_id)

    def _replay(self, endpoint_id: str, document: dict[str, Any], organization_id: str | None) -> WebhookReplay:
        tenant = self._sender.choose_organization(organization_id)
        call = make_call("POST", f"{_path(endpoint_id)}/replay", document, is_repeatable=False, **tenant)
        return self._sender.call(WebhookReplay, call)

    def _list_deliveries(
        self,
        endpoint_id: str,
        status: DeliveryStatus | None,
        organization_id: str | None,
        limit: int,
        cursor: str | None,
    ) -> Call:
        tenant = self._sender.choose_organization(organization_id)
        return make_get(f"{_path(endpoint_id)}/deliveries", **tenant, status=status, limit=limit, cursor=cursor)


def _path(endpoint_id: str) -> str:
    return f"{_ENDPOINTS}/{quote_id(endpoint_id)}"


def _write_types(event_types: Collection[str] | None) -> list[str] | None:
    return None if event_types is None else sorted(event_types)
