"""The tables `api_keys` and `api_key_digests`."""

from datetime import datetime

from soundmark.core.domain.api_key import ApiKey
from soundmark.core.domain.scope import ServerKey, TenantScope
from soundmark.kit.paging import Position
from soundmark.kit.postgres import Database, Tx


async def find_by_digest(db: Database, digest: bytes) -> ApiKey | None:
    """The key whose secret has this digest, in whatever state: one statement, in a transaction of its own."""
    return await db.one_or_none(
        ApiKey,
        """
        SELECT id, organization_id, project_id, scopes, created_at, expires_at, last_used_at, secret_rotated_at,
               revoked_at
          FROM api_key_of_credential(%(digest)s)
        """,
        {"digest": digest},
    )


async def update_last_used(tx: Tx, key: ServerKey, *, now: datetime, used_before: datetime) -> None:
    """Note that a key is used, unless that was noted since `used_before` or the key is not active any more."""
    await tx.run(
        """
        UPDATE api_keys
           SET last_used_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(key_id)s
           AND revoked_at IS NULL
           AND expires_at > %(now)s
           AND (last_used_at IS NULL OR last_used_at <= %(used_before)s)
        """,
        {"organization_id": key.organization_id, "key_id": key.id, "now": now, "used_before": used_before},
    )


async def hold(tx: Tx, key: ServerKey) -> bool:
    """Whether a key is not revoked and has the secret that it came with, until the transaction ends.

    Whoever revokes it or replaces its secret waits, or has committed and is seen; noting its use goes on. Both rows are
    locked, since a wait for one alone would read the other as it was before. Lock order: docs/locks.md.
    """
    found = await tx.value(
        """
        SELECT true
          FROM api_keys k
          JOIN api_key_digests d ON d.organization_id = k.organization_id AND d.api_key_id = k.id
         WHERE k.organization_id = %(organization_id)s
           AND k.id = %(key_id)s
           AND k.revoked_at IS NULL
           AND d.digest = %(digest)s
           FOR KEY SHARE
        """,
        {"organization_id": key.organization_id, "key_id": key.id, "digest": key.digest},
    )
    return found is not None


async def insert(tx: Tx, scope: TenantScope, key: ApiKey) -> None:
    """Record a new key, which nothing opens until its digest is recorded."""
    await tx.run(
        """
        INSERT INTO api_keys (organization_id, id, project_id, scopes, created_at, expires_at)
        VALUES (%(organization_id)s, %(key_id)s, %(project_id)s, %(scopes)s, %(created_at)s, %(expires_at)s)
        """,
        {
            "organization_id": scope.organization_id,
            "key_id": key.id,
            "project_id": key.project_id,
            "scopes": list(key.scopes),
            "created_at": key.created_at,
            "expires_at": key.expires_at,
        },
    )


async def insert_digest(tx: Tx, scope: TenantScope, key_id: str, *, digest: bytes) -> None:
    """Record the digest of a new key's secret."""
    await tx.run(
        """
        INSERT INTO api_key_digests (digest, organization_id, api_key_id)
        VALUES (%(digest)s, %(organization_id)s, %(key_id)s)
        """,
        {"organization_id": scope.organization_id, "key_id": key_id, "digest": digest},
    )


async def update_digest(tx: Tx, scope: TenantScope, key_id: str, *, digest: bytes) -> None:
    """Another secret opens a key from the commit on, and the one before opens nothing."""
    touched = await tx.run(
        """
        UPDATE api_key_digests
           SET digest = %(digest)s
         WHERE organization_id = %(organization_id)s
           AND api_key_id = %(key_id)s
        """,
        {"organization_id": scope.organization_id, "key_id": key_id, "digest": digest},
    )
    assert touched == 1, "every key has the digest of one secret"


async def update_secret_rotated(tx: Tx, scope: TenantScope, key_id: str, *, now: datetime) -> None:
    """Note when a key was given another secret."""
    await tx.run(
        """
        UPDATE api_keys
           SET secret_rotated_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(key_id)s
        """,
        {"organization_id": scope.organization_id, "key_id": key_id, "now": now},
    )


async def lock(tx: Tx, scope: TenantScope, key_id: str) -> ApiKey | None:
    """Lock one key until the transaction ends, against those who act with it too. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        ApiKey,
        """
        SELECT id, organization_id, project_id, scopes, created_at, expires_at, last_used_at, secret_rotated_at,
               revoked_at
          FROM api_keys
         WHERE organization_id = %(organization_id)s
           AND id = %(key_id)s
           FOR UPDATE
        """,
        {"organization_id": scope.organization_id, "key_id": key_id},
    )


async def update_revoked(tx: Tx, scope: TenantScope, key_id: str, *, now: datetime) -> None:
    """Mark one key revoked."""
    await tx.run(
        """
        UPDATE api_keys
           SET revoked_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(key_id)s
           AND revoked_at IS NULL
        """,
        {"organization_id": scope.organization_id, "key_id": key_id, "now": now},
    )


async def list_newest_first(
    tx: Tx, scope: TenantScope, *, project_id: str | None, before: Position | None, limit: int
) -> list[ApiKey]:
    """Up to `limit` keys of the organisation, of one project where `project_id` names it, newest first."""
    return await tx.all(
        ApiKey,
        """
        SELECT id, organization_id, project_id, scopes, created_at, expires_at, last_used_at, secret_rotated_at,
               revoked_at
          FROM api_keys
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
           AND (%(before_at)s::timestamptz IS NULL
                OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::text))
         ORDER BY created_at DESC, id DESC
         LIMIT %(limit)s
        """,
        {
            "organization_id": scope.organization_id,
            "project_id": project_id,
            "before_at": before and before.created_at,
            "before_id": before and before.id,
            "limit": limit,
        },
    )
