"""Turning rows of `webhook_acts` into rows of `webhook_events` and `webhook_deliveries`."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class _Acting:
    organization_id: str


async def list_tenants(tx: Tx, *, limit: int) -> list[str]:
    """Return the ids of up to `limit` organisations that have acts, that with the oldest act first."""
    rows = await tx.all(
        _Acting,
        """
        SELECT organization_id
          FROM webhook_acts
         GROUP BY organization_id
         ORDER BY min(created_at)
         LIMIT %(limit)s
        """,
        {"limit": limit},
    )
    return [row.organization_id for row in rows]


async def hold_tenant(tx: Tx, organization_id: str) -> bool:
    """Keep the organisation from being deleted until the transaction ends; return False if it is gone or locked."""
    held = await tx.value(
        "SELECT 1 FROM organizations WHERE id = %(organization_id)s FOR KEY SHARE SKIP LOCKED",
        {"organization_id": organization_id},
    )
    return held is not None


async def insert_events(tx: Tx, organization_id: str, *, acts_max: int, rows_max: int, now: datetime) -> int:
    """Turn the oldest acts into events and deliveries, and delete them; return the number of acts.

    It takes up to `acts_max` acts, and no further one after `rows_max` rows, as if each event went to every endpoint
    that the act names. Acts that somebody else turns into events at this moment are left out. An endpoint gets what it
    matches if it existed at the time of the act, exists now and is enabled.

    The id of an event is a hash of the act's and the Code's, that of a delivery a hash of the event's and the
    endpoint's, 132 bits of SHA-256 each: the ids are as hard to guess as that of the act, which has 132 random bits.
    """
    count: int = await tx.value(
        """
        WITH locked AS MATERIALIZED (
            SELECT id, project_id, type, actor_type, actor_id, data, xr_ids, endpoint_ids, traceparent, created_at
              FROM webhook_acts
             WHERE organization_id = %(organization_id)s
             ORDER BY created_at, id
             LIMIT %(acts_max)s
               FOR UPDATE SKIP LOCKED
        ), measured AS (
            SELECT locked.*,
                   coalesce(sum(coalesce(cardinality(xr_ids), 1) * (1 + cardinality(endpoint_ids)))
                       OVER (ORDER BY created_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS row_count
              FROM locked
        ), taken AS MATERIALIZED (
            SELECT measured.*
              FROM measured
             WHERE row_count < %(rows_max)s
        ), finished AS (
            DELETE FROM webhook_acts
             USING taken
             WHERE webhook_acts.organization_id = %(organization_id)s
               AND webhook_acts.id = taken.id
        ), made AS MATERIALIZED (
            SELECT 'evn_' || translate(substr(encode(sha256(convert_to(concat_ws('/', taken.id, code.xr_id), 'UTF8')),
                                                     'base64'), 1, 22), '+/', '-_') AS id,
                   project_id, type, actor_type, actor_id,
                   CASE WHEN code.xr_id IS NULL THEN data
                        ELSE jsonb_build_object('xr_id', code.xr_id)::text END AS data,
                   endpoint_ids, traceparent, created_at
              FROM taken
             CROSS JOIN unnest(coalesce(taken.xr_ids, ARRAY[NULL::text])) AS code (xr_id)
        ), recorded AS (
            INSERT INTO webhook_events
                   (organization_id, id, project_id, type, actor_type, actor_id, data, traceparent, created_at)
            SELECT %(organization_id)s, id, project_id, type, actor_type, actor_id, data, traceparent, created_at
              FROM made
        ), addressed AS (
            INSERT INTO webhook_deliveries
                   (organization_id, id, endpoint_id, event_id, event_type, status, next_attempt_at, created_at)
            SELECT %(organization_id)s,
                   'whd_' || translate(substr(encode(sha256(convert_to(concat_ws('/', made.id, endpoint.id), 'UTF8')),
                                                     'base64'), 1, 22), '+/', '-_'),
                   endpoint.id, made.id, made.type, 'pending', %(now)s, %(now)s
              FROM made
              JOIN webhook_endpoints endpoint
                ON endpoint.organization_id = %(organization_id)s
               AND endpoint.id = ANY(made.endpoint_ids)
               AND endpoint.enabled
               AND (endpoint.project_id IS NULL OR endpoint.project_id = made.project_id)
               AND (endpoint.event_types IS NULL OR made.type = ANY(endpoint.event_types))
        )
        SELECT count(*) FROM taken
        """,
        {"organization_id": organization_id, "acts_max": acts_max, "rows_max": rows_max, "now": now},
    )
    return count
