"""The table `announced_expiries`, and the acts of Codes that expired."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.tracing.context import find_traceparent


@dataclass(frozen=True, slots=True)
class Expiry:
    """The last Code of a page, in the order of expiry."""

    expires_at: datetime
    xr_id: str


@dataclass(frozen=True, slots=True)
class _Listening:
    organization_id: str


async def list_tenants(tx: Tx) -> list[str]:
    """Return the ids of the organisations that have webhook endpoints."""
    rows = await tx.all(_Listening, "SELECT DISTINCT organization_id FROM webhook_endpoints ORDER BY organization_id")
    return [row.organization_id for row in rows]


async def hold_tenant(tx: Tx, organization_id: str) -> bool:
    """Keep the organisation from being deleted until the transaction ends; return False if it is gone or locked."""
    held = await tx.value(
        "SELECT 1 FROM organizations WHERE id = %(organization_id)s FOR KEY SHARE SKIP LOCKED",
        {"organization_id": organization_id},
    )
    return held is not None


async def insert_if_new(tx: Tx, organization_id: str, *, now: datetime) -> None:
    """Begin with the Codes that expire from the creation of the organisation's first endpoint on."""
    await tx.run(
        """
        INSERT INTO announced_expiries (organization_id, expires_at, xr_id)
        SELECT %(organization_id)s, coalesce(min(created_at), %(now)s), ''
          FROM webhook_endpoints
         WHERE organization_id = %(organization_id)s
            ON CONFLICT (organization_id) DO NOTHING
        """,
        {"organization_id": organization_id, "now": now},
    )


async def lock(tx: Tx, organization_id: str) -> Expiry | None:
    """Lock how far expiries were announced; return None if another process announces them. Never waits."""
    return await tx.one_or_none(
        Expiry,
        """
        SELECT expires_at, xr_id
          FROM announced_expiries
         WHERE organization_id = %(organization_id)s
           FOR UPDATE SKIP LOCKED
        """,
        {"organization_id": organization_id},
    )


async def find_first_listening(tx: Tx, organization_id: str) -> datetime | None:
    """Return when the oldest of the organisation's endpoints was created."""
    first: datetime | None = await tx.value(
        "SELECT min(created_at) FROM webhook_endpoints WHERE organization_id = %(organization_id)s",
        {"organization_id": organization_id},
    )
    return first


async def lock_issuance(tx: Tx, organization_id: str) -> None:
    """Wait for the organisation's issuances under way; those that follow issue nothing that has expired by now.

    Lock order: docs/locks.md.
    """
    await tx.run(
        """
        SELECT
          FROM code_entitlements
         WHERE organization_id = %(organization_id)s
           FOR NO KEY UPDATE
        """,
        {"organization_id": organization_id},
    )


async def find_last(tx: Tx, organization_id: str, *, after: Expiry, until: datetime, limit: int) -> Expiry | None:
    """Return the last of the next `limit` Codes to expire after `after` and by `until`; None if no Code does."""
    # The index has no ids: that of a hundred thousand Codes with one time of expiry stays small, and costs issuing
    # little. In return, Codes with one time are sorted for each page.
    return await tx.one_or_none(
        Expiry,
        """
        SELECT expires_at, xr_id
          FROM (SELECT expires_at, xr_id
                  FROM codes
                 WHERE organization_id = %(organization_id)s
                   AND expires_at >= %(after_at)s::timestamptz
                   AND (expires_at, xr_id) > (%(after_at)s::timestamptz, %(after_id)s::text)
                   AND expires_at <= %(until)s::timestamptz
                 ORDER BY expires_at, xr_id
                 LIMIT %(limit)s) AS expired
         ORDER BY expires_at DESC, xr_id DESC
         LIMIT 1
        """,
        {
            "organization_id": organization_id,
            "after_at": after.expires_at,
            "after_id": after.xr_id,
            "until": until,
            "limit": limit,
        },
    )


async def insert_acts(tx: Tx, organization_id: str, *, act_id: str, after: Expiry, last: Expiry, now: datetime) -> int:
    """Insert the acts of the unrevoked Codes that expire after `after`, up to `last`; return the number of Codes.

    There is one act for each project; its id is `act_id` and the project's. The Codes are held, by id: a revocation
    under way, which began before a Code expired, is waited for, and is not contradicted. Lock order: docs/locks.md.
    """
    count: int = await tx.value(
        """
        WITH held AS MATERIALIZED (
            SELECT xr_id, project_id
              FROM codes
             WHERE organization_id = %(organization_id)s
               AND expires_at BETWEEN %(after_at)s::timestamptz AND %(last_at)s::timestamptz
               AND (expires_at, xr_id) > (%(after_at)s::timestamptz, %(after_id)s::text)
               AND (expires_at, xr_id) <= (%(last_at)s::timestamptz, %(last_id)s::text)
               AND revoked_at IS NULL
             ORDER BY xr_id
               FOR SHARE
        ), listening AS (
            SELECT array_agg(id) AS endpoint_ids
              FROM webhook_endpoints
             WHERE organization_id = %(organization_id)s
        ), announced AS (
            INSERT INTO webhook_acts
                   (organization_id, id, project_id, type, actor_type, actor_id, data, xr_ids, endpoint_ids,
                    traceparent, created_at)
            SELECT %(organization_id)s, %(act_id)s || '.' || project_id, project_id, 'code.expired', 'system',
                   'soundmark', '{}', array_agg(xr_id), endpoint_ids, %(traceparent)s::text, %(now)s
              FROM held CROSS JOIN listening
             WHERE endpoint_ids IS NOT NULL
             GROUP BY project_id, endpoint_ids
        )
        SELECT count(*) FROM held
        """,
        {
            "organization_id": organization_id,
            "act_id": act_id,
            "after_at": after.expires_at,
            "after_id": after.xr_id,
            "last_at": last.expires_at,
            "last_id": last.xr_id,
            "traceparent": find_traceparent(),
            "now": now,
        },
    )
    return count


async def update(tx: Tx, organization_id: str, *, announced: Expiry) -> None:
    """Set how far expiries were announced, under its lock."""
    await tx.run(
        """
        UPDATE announced_expiries
           SET expires_at = %(expires_at)s,
               xr_id      = %(xr_id)s
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id, "expires_at": announced.expires_at, "xr_id": announced.xr_id},
    )
