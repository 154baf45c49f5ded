"""The tables `api_keys` and `api_key_digests`."""

from collections.abc import AsyncGenerator
from dataclasses import asdict
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.tenancy.api_key import ApiKey
from soundmark.core.domain.tenancy.scope import ServerKey, TenantScope
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.shared_connection import SharedConnection
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.paging import Position

_SELECT: Final[LiteralString] = """
    SELECT id, organization_id, project_id, name, scopes, created_at, expires_at, last_used_at, secret_rotated_at,
           revoked_at
      FROM api_keys
"""


async def find_by_digest(reads: SharedConnection, digest: bytes) -> ApiKey | None:
    """Return the key whose secret has this digest, whatever its status, in a transaction of its own."""
    statement: Final = """
        SELECT id, organization_id, project_id, name, scopes, created_at, expires_at, last_used_at,
               secret_rotated_at, revoked_at
          FROM api_key_of_credential($1::bytea)
        """
    (rows,) = await reads.run(Call(statement, (rf"\x{digest.hex()}",)), is_repeatable=True)
    assert len(rows) <= 1, "digests are unique"
    return ApiKey(*rows[0]) if rows else None


async def update_last_used(tx: Tx, key: ServerKey, *, now: datetime, used_before: datetime) -> None:
    """Record that an active key is used, unless a use after `used_before` is recorded already."""
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


async def hold(tx: AnyTx, key: ServerKey) -> bool:
    """Keep a key and its secret as they are until the transaction ends; return False if either is gone already.

    A transaction that revokes the key or replaces its secret either waits for this one, or has committed and is seen.
    Recording the key's use does not wait. Both rows are held: after waiting for only one of them, the other would be
    read as it was before. Lock order: docs/locks.md.
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
    """Insert a key; `insert_digest` makes it usable."""
    await tx.run(
        """
        INSERT INTO api_keys (organization_id, id, project_id, name, scopes, created_at, expires_at)
        VALUES (%(organization_id)s, %(key_id)s, %(project_id)s, %(name)s, %(scopes)s, %(created_at)s, %(expires_at)s)
        """,
        {**asdict(key), "organization_id": scope.organization_id, "key_id": key.id, "scopes": list(key.scopes)},
    )


async def insert_digest(tx: Tx, scope: TenantScope, key_id: str, *, digest: bytes) -> None:
    """Insert the digest of a new key's secret."""
    await tx.run(
        """
        INSERT INTO api_key_digests (digest, organization_id, api_key_id)
        VALUES (%(digest)s, %(organization_id)s, %(key_id)s)
        """,
        {"organization_id": scope.organization_id, "key_id": key_id, "digest": digest},
    )


async def update_digest(tx: Tx, scope: TenantScope, key_id: str, *, digest: bytes) -> None:
    """Replace the digest of a key's secret: from the commit on, only the new secret works."""
    touched = await tx.run(
        """
        UPDATE api_key_digests
           SET digest = %(digest)s
         WHERE organization_id = %(organization_id)s
           AND api_key_id = %(key_id)s
        """,
        {"organization_id": scope.organization_id, "key_id": key_id, "digest": digest},
    )
    assert touched == 1, "every key has one digest"


async def update_secret_rotated(tx: Tx, scope: TenantScope, key_id: str, *, now: datetime) -> None:
    """Note when a key's secret was replaced."""
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
    """Lock one key until the transaction ends, also against requests that use it. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        ApiKey,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(key_id)s FOR UPDATE",
        {"organization_id": scope.organization_id, "key_id": key_id},
    )


async def update_name(tx: Tx, scope: TenantScope, key_id: str, *, name: str | None) -> None:
    """Change the name of one key; None removes it."""
    await tx.run(
        """
        UPDATE api_keys
           SET name = %(name)s
         WHERE organization_id = %(organization_id)s
           AND id = %(key_id)s
        """,
        {"organization_id": scope.organization_id, "key_id": key_id, "name": name},
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
    """Return up to `limit` keys of the organisation, or of one of its projects, newest first."""
    return await tx.all(
        ApiKey,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
        """
        + NEWEST_FIRST,
        {
            "organization_id": scope.organization_id,
            "project_id": project_id,
            **page_params(before, limit),
        },
    )


def list_oldest_first(
    tx: Tx, scope: TenantScope, *, project_id: str | None, rows_max: int
) -> AsyncGenerator[list[ApiKey], None]:
    """Yield pages of the keys of the organisation or one project, oldest first, then by the bytes of their ids."""
    # The collation of the database may be another one, and an archive is the same everywhere.
    return tx.pages(
        ApiKey,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
         ORDER BY created_at, id COLLATE "C"
        """,
        {"organization_id": scope.organization_id, "project_id": project_id},
        rows_max=rows_max,
    )
