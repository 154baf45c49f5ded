"""The tables `decode_certificates` and `decode_certificate_owners`."""

from datetime import datetime
from typing import Final

from soundmark.core.domain.codes.code import ListedCode
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.kit.postgres.transaction import Tx

_NUMBER_LOCK: Final = 8  # Kind of advisory lock: docs/locks.md.


async def lock_number(tx: Tx, scope: TenantScope) -> None:
    """Let the organisation issue one certificate at a time, until the transaction ends. Lock order: docs/locks.md."""
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _NUMBER_LOCK, "organization_id": scope.organization_id},
    )


async def find_issued_at(tx: Tx, scope: TenantScope, *, rank: int, now: datetime) -> datetime | None:
    """Return when the organisation's certificate of this rank was issued, the newest being the first.

    Those after `now`, before which the clock was set back, do not count.
    """
    issued_at: datetime | None = await tx.value(
        """
        SELECT issued_at
          FROM decode_certificates
         WHERE organization_id = %(organization_id)s
           AND issued_at <= %(now)s
         ORDER BY issued_at DESC
        OFFSET %(newer)s
         LIMIT 1
        """,
        {"organization_id": scope.organization_id, "newer": rank - 1, "now": now},
    )
    return issued_at


async def insert(
    tx: Tx, scope: TenantScope, certificate_id: str, code: ListedCode, document: bytes, *, now: datetime
) -> None:
    """Insert a signed certificate of a Code, and the row that finds its organisation."""
    await tx.run(
        """
        WITH inserted AS (
            INSERT INTO decode_certificates (organization_id, id, project_id, xr_id, issued_at, document)
            VALUES (%(organization_id)s, %(id)s, %(project_id)s, %(xr_id)s, %(now)s, %(document)s)
            RETURNING organization_id, id
        )
        INSERT INTO decode_certificate_owners (certificate_id, organization_id)
        SELECT id, organization_id
          FROM inserted
        """,
        {
            "organization_id": scope.organization_id,
            "id": certificate_id,
            "project_id": code.project_id,
            "xr_id": code.xr_id,
            "document": document,
            "now": now,
        },
    )


async def find_organization_id(tx: Tx, certificate_id: str) -> str | None:
    """Return the organisation of a certificate."""
    organization_id: str | None = await tx.value(
        "SELECT organization_id FROM decode_certificate_owners WHERE certificate_id = %(certificate_id)s",
        {"certificate_id": certificate_id},
    )
    return organization_id


async def find(tx: Tx, organization_id: str, certificate_id: str) -> bytes | None:
    """Return the JSON text of a certificate."""
    document: bytes | None = await tx.value(
        """
        SELECT document
          FROM decode_certificates
         WHERE organization_id = %(organization_id)s
           AND id = %(certificate_id)s
        """,
        {"organization_id": organization_id, "certificate_id": certificate_id},
    )
    return document
