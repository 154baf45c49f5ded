"""The tables `api_keys` and `api_key_digests`."""

from datetime import datetime

from soundmark.core.domain.api_key import ApiKey
from soundmark.core.domain.scope import ServerKey
from soundmark.kit.postgres import Tx


async def find_by_digest(tx: Tx, digest: bytes) -> ApiKey | None:
    """The key whose secret has this digest, in whatever state. The transaction is begun for that credential."""
    return await tx.one_or_none(
        ApiKey,
        """
        SELECT k.id, k.organization_id, k.project_id, k.scopes, k.created_at, k.expires_at, k.last_used_at,
               k.secret_rotated_at, k.revoked_at
          FROM api_key_digests d
          JOIN api_keys k ON k.organization_id = d.organization_id AND k.id = d.api_key_id
         WHERE d.digest = %(digest)s
        """,
        {"digest": digest},
    )


async def touch(tx: Tx, key: ServerKey, *, now: datetime, used_before: datetime) -> None:
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


async def hold_unrevoked(tx: Tx, key: ServerKey) -> bool:
    """Whether a key is not revoked, which nobody changes until the transaction ends. Lock order: docs/locks.md."""
    found = await tx.value(
        """
        SELECT true
          FROM api_keys
         WHERE organization_id = %(organization_id)s
           AND id = %(key_id)s
           AND revoked_at IS NULL
           FOR SHARE
        """,
        {"organization_id": key.organization_id, "key_id": key.id},
    )
    return found is not None
