"""The table `codes`, joined to what was signed where a whole Code is read."""

from datetime import datetime

from soundmark.core.domain.code import Code, ListedCode
from soundmark.core.domain.scope import TenantScope
from soundmark.kit.paging import Position
from soundmark.kit.postgres import Tx


async def insert(tx: Tx, scope: TenantScope, code: Code) -> None:
    """Record a new Code, whose broadcast is recorded already."""
    await tx.run(
        """
        INSERT INTO codes (organization_id, xr_id, project_id, campaign_id, issuer, issued_at, expires_at,
                           broadcast_token, audience_integration_id, key_id)
        VALUES (%(organization_id)s, %(xr_id)s, %(project_id)s, %(campaign_id)s, %(issuer)s, %(issued_at)s,
                %(expires_at)s, %(broadcast_token)s, %(audience_integration_id)s, %(key_id)s)
        """,
        {
            "organization_id": scope.organization_id,
            "xr_id": code.xr_id,
            "project_id": code.project_id,
            "campaign_id": code.campaign_id,
            "issuer": code.issuer,
            "issued_at": code.issued_at,
            "expires_at": code.expires_at,
            "broadcast_token": code.broadcast_token,
            "audience_integration_id": code.audience_integration_id,
            "key_id": code.key_id,
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


async def revoke(tx: Tx, scope: TenantScope, xr_id: str, *, now: datetime) -> None:
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


async def list_newest_first(tx: Tx, scope: TenantScope, *, before: Position | None, limit: int) -> list[ListedCode]:
    """Up to `limit` Codes of the organisation, and of the one project that the caller is confined to, newest first."""
    return await tx.all(
        ListedCode,
        """
        SELECT xr_id, organization_id, project_id, campaign_id, issuer, issued_at, expires_at, broadcast_token,
               audience_integration_id, revoked_at
          FROM codes
         WHERE organization_id = %(organization_id)s
           AND (%(confined_to)s::text IS NULL OR project_id = %(confined_to)s)
           AND (%(before_at)s::timestamptz IS NULL
                OR (issued_at, xr_id) < (%(before_at)s::timestamptz, %(before_id)s::text))
         ORDER BY issued_at DESC, xr_id DESC
         LIMIT %(limit)s
        """,
        {
            "organization_id": scope.organization_id,
            "confined_to": scope.project_id,
            "before_at": before and before.created_at,
            "before_id": before and before.id,
            "limit": limit,
        },
    )


async def any_unexpired_signed_by(tx: Tx, key_id: str, *, now: datetime) -> bool:
    """Whether a Code that has not expired, of any organisation, carries a signature of this key."""
    found = await tx.value(
        """
        SELECT true
          FROM codes
         WHERE key_id = %(key_id)s
           AND expires_at > %(now)s
         LIMIT 1
        """,
        {"key_id": key_id, "now": now},
    )
    return found is not None
