"""The table `webhook_events`."""

from collections.abc import Sequence

from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.event import WebhookEvent
from soundmark.kit.postgres.transaction import Tx


async def find(tx: Tx, scope: TenantScope, event_id: str) -> WebhookEvent | None:
    """Return one event."""
    return await tx.one_or_none(
        WebhookEvent,
        """
        SELECT organization_id, id, project_id, type, actor_type, actor_id, data, created_at
          FROM webhook_events
         WHERE organization_id = %(organization_id)s
           AND id = %(event_id)s
        """,
        {"organization_id": scope.organization_id, "event_id": event_id},
    )


async def count_of(tx: Tx, scope: TenantScope, event_ids: Sequence[str]) -> int:
    """Count those of the events that exist."""
    number: int = await tx.value(
        """
        SELECT count(*)
          FROM webhook_events
         WHERE organization_id = %(organization_id)s
           AND id = ANY(%(event_ids)s::text[])
        """,
        {"organization_id": scope.organization_id, "event_ids": list(event_ids)},
    )
    return number
