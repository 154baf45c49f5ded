"""The table `codes`, joined to what was signed where a whole Code is read."""

from collections.abc import Sequence
from datetime import datetime

from soundmark.core.domain.code import Code, ListedCode
from soundmark.core.domain.scope import TenantScope
from soundmark.kit.arrays import bytes_array, text_array, time_array
from soundmark.kit.postgres import Tx


async def insert(tx: Tx, issued: Sequence[Code]) -> None:
    """Record new Codes of one organisation, issued at one moment under one key, and make their tokens answerable."""
    first = issued[0]
    await tx.run(
        """
        WITH fresh AS (
            SELECT *
              FROM unnest(%(xr_ids)s::text[], %(tokens)s::text[], %(project_ids)s::text[], %(campaign_ids)s::text[],
                          %(issuers)s::text[], %(expire_at)s::timestamptz[], %(integration_ids)s::text[],
                          %(payloads)s::bytea[], %(signatures)s::bytea[])
                   AS fresh (xr_id, token, project_id, campaign_id, issuer, expires_at, integration_id, payload,
                             signature)
        ), audible AS (
            INSERT INTO broadcasts (token, payload, signature)
            SELECT token, payload, signature
              FROM fresh
        )
        INSERT INTO codes (organization_id, xr_id, project_id, campaign_id, issuer, issued_at, expires_at,
                           broadcast_token, audience_integration_id, key_id)
        SELECT %(organization_id)s, xr_id, project_id, campaign_id, issuer, %(issued_at)s, expires_at, token,
               integration_id, %(key_id)s
          FROM fresh
        """,
        {
            "organization_id": first.organization_id,
            "issued_at": first.issued_at,
            "key_id": first.key_id,
            "xr_ids": text_array(code.xr_id for code in issued),
            "tokens": text_array(code.broadcast_token for code in issued),
            "project_ids": text_array(code.project_id for code in issued),
            "campaign_ids": text_array(code.campaign_id for code in issued),
            "issuers": text_array(code.issuer for code in issued),
            "expire_at": time_array(code.expires_at for code in issued),
            "integration_ids": text_array(code.audience_integration_id for code in issued),
            "payloads": bytes_array(code.payload for code in issued),
            "signatures": bytes_array(code.signature for code in issued),
        },
    )


async def find(tx: Tx, scope: TenantScope, xr_id: str, *, project_id: str | None = None) -> Code | None:
    """One Code of the organisation, of the project where one is named, and of the one the caller is confined to."""
    return await tx.one_or_none(
        Code,
        """
        SELECT c.xr_id, c.organization_id, c.project_id, c.campaign_id, c.issuer, c.issued_at, c.expires_at,
               c.broadcast_token, c.audience_integration_id, c.key_id, c.revoked_at, b.payload, b.signature
          FROM codes c
          JOIN broadcasts b ON b.token = c.broadcast_token
         WHERE c.organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR c.project_id = %(project_id)s)
           AND (%(confined_to)s::text IS NULL OR c.project_id = %(confined_to)s)
           AND c.xr_id = %(xr_id)s
        """,
        {
            "organization_id": scope.organization_id,
            "project_id": project_id,
            "confined_to": scope.project_id,
            "xr_id": xr_id,
        },
    )


async def lock(tx: Tx, scope: TenantScope, xr_id: str) -> Code | None:
    """Lock one Code and its broadcast until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        Code,
        """
        SELECT c.xr_id, c.organization_id, c.project_id, c.campaign_id, c.issuer, c.issued_at, c.expires_at,
               c.broadcast_token, c.audience_integration_id, c.key_id, c.revoked_at, b.payload, b.signature
          FROM codes c
          JOIN broadcasts b ON b.token = c.broadcast_token
         WHERE c.organization_id = %(organization_id)s
           AND (%(confined_to)s::text IS NULL OR c.project_id = %(confined_to)s)
           AND c.xr_id = %(xr_id)s
           FOR NO KEY UPDATE
        """,
        {"organization_id": scope.organization_id, "confined_to": scope.project_id, "xr_id": xr_id},
    )


async def update_revoked(tx: Tx, scope: TenantScope, xr_id: str, *, now: datetime) -> None:
    """Mark one Code revoked."""
    await tx.run(
        """
        UPDATE codes
           SET revoked_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND xr_id = %(xr_id)s
           AND revoked_at IS NULL
        """,
        {"organization_id": scope.organization_id, "xr_id": xr_id, "now": now},
    )


async def find_many(tx: Tx, scope: TenantScope, project_id: str, xr_ids: Sequence[str]) -> list[Code]:
    """Those of the Codes that are there in one project, in no order."""
    return await tx.all(
        Code,
        """
        SELECT c.xr_id, c.organization_id, c.project_id, c.campaign_id, c.issuer, c.issued_at, c.expires_at,
               c.broadcast_token, c.audience_integration_id, c.key_id, c.revoked_at, b.payload, b.signature
          FROM codes c
          JOIN broadcasts b ON b.token = c.broadcast_token
         WHERE c.organization_id = %(organization_id)s
           AND c.project_id = %(project_id)s
           AND c.xr_id = ANY(%(xr_ids)s::text[])
        """,
        {"organization_id": scope.organization_id, "project_id": project_id, "xr_ids": list(xr_ids)},
    )


async def find_many_listed(tx: Tx, scope: TenantScope, project_id: str, xr_ids: Sequence[str]) -> list[ListedCode]:
    """`find_many`, without what was signed."""
    return await tx.all(
        ListedCode,
        """
        SELECT xr_id, organization_id, project_id, campaign_id, issuer, issued_at, expires_at, broadcast_token,
               audience_integration_id, revoked_at
          FROM codes
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND xr_id = ANY(%(xr_ids)s::text[])
        """,
        {"organization_id": scope.organization_id, "project_id": project_id, "xr_ids": list(xr_ids)},
    )


async def lock_many(tx: Tx, scope: TenantScope, project_id: str, xr_ids: Sequence[str]) -> list[ListedCode]:
    """Lock those of the Codes that are there in one project, and their broadcasts, until the transaction ends.

    One after the other by id, so that two selections that overlap never wait for each other: docs/locks.md.
    """
    return await tx.all(
        ListedCode,
        """
        SELECT c.xr_id, c.organization_id, c.project_id, c.campaign_id, c.issuer, c.issued_at, c.expires_at,
               c.broadcast_token, c.audience_integration_id, c.revoked_at
          FROM codes c
          JOIN broadcasts b ON b.token = c.broadcast_token
         WHERE c.organization_id = %(organization_id)s
           AND c.project_id = %(project_id)s
           AND c.xr_id = ANY(%(xr_ids)s::text[])
         ORDER BY c.xr_id
           FOR NO KEY UPDATE
        """,
        {"organization_id": scope.organization_id, "project_id": project_id, "xr_ids": list(xr_ids)},
    )


async def update_revoked_many(tx: Tx, scope: TenantScope, xr_ids: Sequence[str], *, now: datetime) -> None:
    """Mark Codes revoked that `lock_many` locked."""
    await tx.run(
        """
        UPDATE codes
           SET revoked_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND xr_id = ANY(%(xr_ids)s::text[])
           AND revoked_at IS NULL
        """,
        {"organization_id": scope.organization_id, "xr_ids": list(xr_ids), "now": now},
    )


async def lock_in_campaign(tx: Tx, scope: TenantScope, campaign_id: str, *, now: datetime) -> int:
    """Lock every Code of a campaign that is active at `now`, by id, until the transaction ends; how many they are.

    Their broadcasts are not locked besides: whoever changes one has its Code. Lock order: docs/locks.md.
    """
    count: int = await tx.value(
        """
        SELECT count(*)
          FROM (SELECT
                  FROM codes
                 WHERE organization_id = %(organization_id)s
                   AND campaign_id = %(campaign_id)s
                   AND revoked_at IS NULL
                   AND expires_at > %(now)s
                 ORDER BY xr_id
                   FOR NO KEY UPDATE) AS held
        """,
        {"organization_id": scope.organization_id, "campaign_id": campaign_id, "now": now},
    )
    return count


async def update_revoked_in_campaign(tx: Tx, scope: TenantScope, campaign_id: str, *, now: datetime) -> int:
    """Mark every Code of a campaign that is active at `now` revoked, and its token unanswerable; how many they are.

    They are locked already. One statement for both halves and for all of them, since there may be a great many.
    """
    count: int = await tx.value(
        """
        WITH revoked AS (
            UPDATE codes
               SET revoked_at = %(now)s
             WHERE organization_id = %(organization_id)s
               AND campaign_id = %(campaign_id)s
               AND revoked_at IS NULL
               AND expires_at > %(now)s
            RETURNING broadcast_token
        ), silenced AS (
            UPDATE broadcasts
               SET revoked_at = %(now)s
              FROM revoked
             WHERE broadcasts.token = revoked.broadcast_token
        )
        SELECT count(*) FROM revoked
        """,
        {"organization_id": scope.organization_id, "campaign_id": campaign_id, "now": now},
    )
    return count


async def find_unexpired_signed_by(tx: Tx, key_id: str, *, now: datetime) -> str | None:
    """Return the id of some Code, of any organisation, that this key signed and that is unexpired at `now`."""
    xr_id: str | None = await tx.value(
        """
        SELECT xr_id
          FROM codes
         WHERE key_id = %(key_id)s
           AND expires_at > %(now)s
         LIMIT 1
        """,
        {"key_id": key_id, "now": now},
    )
    return xr_id
