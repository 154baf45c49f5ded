"""Deleting events and deliveries: those that are old, those of no endpoint, and those of a deleted organisation."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class AbandonedEndpoint:
    """An endpoint that was deleted, and whose deliveries were not."""

    organization_id: str
    endpoint_id: str


@dataclass(frozen=True, slots=True)
class _Keeping:
    organization_id: str


async def list_tenants(tx: Tx, *, older_than: datetime) -> list[str]:
    """Return the ids of the organisations that have an event or a delivery from before `older_than`."""
    rows = await tx.all(
        _Keeping,
        """
        SELECT id AS organization_id
          FROM organizations
         WHERE EXISTS (SELECT
                         FROM webhook_events
                        WHERE webhook_events.organization_id = organizations.id
                          AND webhook_events.created_at < %(older_than)s::timestamptz)
            OR EXISTS (SELECT
                         FROM webhook_endpoints
                         JOIN webhook_deliveries
                           ON webhook_deliveries.organization_id = organizations.id
                          AND webhook_deliveries.endpoint_id = webhook_endpoints.id
                          AND webhook_deliveries.created_at < %(older_than)s::timestamptz
                        WHERE webhook_endpoints.organization_id = organizations.id)
         ORDER BY id
        """,
        {"older_than": older_than},
    )
    return [row.organization_id for row in rows]


async def list_abandoned(tx: Tx) -> list[AbandonedEndpoint]:
    """Return the deleted endpoints, of every organisation, that have deliveries left."""
    # It jumps in the index from one endpoint to the next.
    return await tx.all(
        AbandonedEndpoint,
        """
        WITH RECURSIVE addressed AS (
            (SELECT organization_id, endpoint_id
               FROM webhook_deliveries
              ORDER BY organization_id, endpoint_id
              LIMIT 1)
            UNION ALL
            SELECT next.organization_id, next.endpoint_id
              FROM addressed
             CROSS JOIN LATERAL (
                    SELECT organization_id, endpoint_id
                      FROM webhook_deliveries
                     WHERE (organization_id, endpoint_id) > (addressed.organization_id, addressed.endpoint_id)
                     ORDER BY organization_id, endpoint_id
                     LIMIT 1) AS next
        )
        SELECT organization_id, endpoint_id
          FROM addressed
         WHERE NOT EXISTS (SELECT
                             FROM webhook_endpoints
                            WHERE webhook_endpoints.organization_id = addressed.organization_id
                              AND webhook_endpoints.id = addressed.endpoint_id)
        """,
    )


async def delete_events(tx: Tx, organization_id: str, *, older_than: datetime, limit: int) -> int:
    """Delete up to `limit` events of the organisation from before `older_than`, oldest first; return their number.

    Those with a pending delivery stay: somebody has replayed them, and without its event a delivery is never attempted.
    """
    return await tx.run(
        """
        DELETE FROM webhook_events
         WHERE organization_id = %(organization_id)s
           AND id = ANY(ARRAY(SELECT id
                                FROM webhook_events
                               WHERE organization_id = %(organization_id)s
                                 AND created_at < %(older_than)s::timestamptz
                                 AND NOT EXISTS (SELECT
                                                   FROM webhook_deliveries
                                                  WHERE organization_id = %(organization_id)s
                                                    AND event_id = webhook_events.id
                                                    AND status = 'pending')
                               ORDER BY created_at, id
                               LIMIT %(limit)s))
        """,
        {"organization_id": organization_id, "older_than": older_than, "limit": limit},
    )


async def delete_deliveries(tx: Tx, organization_id: str, endpoint_id: str, *, older_than: datetime, limit: int) -> int:
    """Delete up to `limit` deliveries to an endpoint from before `older_than`; return their number."""
    return await tx.run(
        """
        DELETE FROM webhook_deliveries
         WHERE organization_id = %(organization_id)s
           AND id = ANY(ARRAY(SELECT id
                                FROM webhook_deliveries
                               WHERE organization_id = %(organization_id)s
                                 AND endpoint_id = %(endpoint_id)s
                                 AND created_at < %(older_than)s::timestamptz
                               ORDER BY created_at, id
                               LIMIT %(limit)s))
        """,
        {"organization_id": organization_id, "endpoint_id": endpoint_id, "older_than": older_than, "limit": limit},
    )


async def list_endpoint_ids(tx: Tx, organization_id: str) -> list[str]:
    """Return the ids of the organisation's endpoints."""
    ids: list[str] = await tx.value(
        "SELECT coalesce(array_agg(id), '{}') FROM webhook_endpoints WHERE organization_id = %(organization_id)s",
        {"organization_id": organization_id},
    )
    return ids
