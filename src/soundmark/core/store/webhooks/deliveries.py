"""The table `webhook_deliveries`, as people see it. `dispatch` is what sends."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.delivery import DeliveryStatus, WebhookDelivery
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)

# Insert a delivery of each chosen event that an endpoint matches; the choice stands between the two. They return null,
# and insert nothing, if there would be more than the limit.
_INSERT_CHOSEN: Final = """
    WITH chosen AS MATERIALIZED (
        SELECT event.id, event.type
          FROM webhook_endpoints endpoint
          JOIN webhook_events event
            ON event.organization_id = %(organization_id)s
"""
_UNLESS_PENDING: Final = """
           AND (endpoint.project_id IS NULL OR endpoint.project_id = event.project_id)
           AND (endpoint.event_types IS NULL OR event.type = ANY(endpoint.event_types))
         WHERE endpoint.organization_id = %(organization_id)s
           AND endpoint.id = %(endpoint_id)s
           AND NOT EXISTS (
               SELECT
                 FROM webhook_deliveries waiting
                WHERE waiting.organization_id = %(organization_id)s
                  AND waiting.endpoint_id = %(endpoint_id)s
                  AND waiting.event_id = event.id
                  AND waiting.status = 'pending'
               )
         LIMIT %(limit)s + 1
    ), inserted AS (
        INSERT INTO webhook_deliveries
               (organization_id, id, endpoint_id, event_id, event_type, status, next_attempt_at, created_at)
        SELECT %(organization_id)s,
               'whd_' || translate(substr(encode(sha256(convert_to(concat_ws('/', %(replay_id)s::text, chosen.id),
                                                                   'UTF8')),
                                                 'base64'), 1, 22), '+/', '-_'),
               %(endpoint_id)s, chosen.id, chosen.type, 'pending', %(now)s, %(now)s
          FROM chosen
         WHERE (SELECT count(*) FROM chosen) <= %(limit)s
            ON CONFLICT (organization_id, endpoint_id, event_id) WHERE status = 'pending' DO NOTHING
        RETURNING 1
    )
    SELECT CASE WHEN (SELECT count(*) FROM chosen) <= %(limit)s THEN (SELECT count(*) FROM inserted) END
"""


async def list_newest_first(
    tx: Tx,
    scope: TenantScope,
    endpoint_id: str,
    *,
    status: DeliveryStatus | None,
    before: Position | None,
    limit: int,
) -> list[WebhookDelivery]:
    """Return up to `limit` deliveries to an endpoint, newest first, after position `before`."""
    # There may be a hundred thousand with one time, and each page must start in the index where the last one ended.
    before = before or Position(_END_OF_TIME, "")
    return await tx.all(
        WebhookDelivery,
        """
        SELECT organization_id, id, endpoint_id, event_id, event_type, status, attempts, last_status_code, last_error,
               next_attempt_at, created_at
          FROM webhook_deliveries
         WHERE organization_id = %(organization_id)s
           AND endpoint_id = %(endpoint_id)s
           AND (%(status)s::text IS NULL OR status = %(status)s)
           AND (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::text)
         ORDER BY created_at DESC, id DESC
         LIMIT %(limit)s
        """,
        {
            "organization_id": scope.organization_id,
            "endpoint_id": endpoint_id,
            "status": status,
            "before_at": before.created_at,
            "before_id": before.id,
            "limit": limit,
        },
    )


async def insert_replayed_period(
    tx: Tx,
    scope: TenantScope,
    endpoint_id: str,
    *,
    replay_id: str,
    from_at: datetime,
    to_at: datetime,
    now: datetime,
    limit: int,
) -> int | None:
    """Insert a delivery of each event of a period that the endpoint matches, unless one is pending; return how many.

    The period begins with `from_at` and ends before `to_at`. None means that there would be more than `limit`, and that
    none was inserted.
    """
    inserted_count: int | None = await tx.value(
        _INSERT_CHOSEN
        + "AND event.created_at >= %(from_at)s::timestamptz AND event.created_at < %(to_at)s::timestamptz"
        + _UNLESS_PENDING,
        {
            "organization_id": scope.organization_id,
            "endpoint_id": endpoint_id,
            "replay_id": replay_id,
            "from_at": from_at,
            "to_at": to_at,
            "now": now,
            "limit": limit,
        },
    )
    return inserted_count


async def insert_replayed(
    tx: Tx,
    scope: TenantScope,
    endpoint_id: str,
    *,
    replay_id: str,
    event_ids: Sequence[str],
    now: datetime,
    limit: int,
) -> int | None:
    """Do the same for those of these events that the endpoint matches."""
    inserted_count: int | None = await tx.value(
        _INSERT_CHOSEN + "AND event.id = ANY(%(event_ids)s::text[])" + _UNLESS_PENDING,
        {
            "organization_id": scope.organization_id,
            "endpoint_id": endpoint_id,
            "replay_id": replay_id,
            "event_ids": list(event_ids),
            "now": now,
            "limit": limit,
        },
    )
    return inserted_count
