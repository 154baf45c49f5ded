"""The table `organizations`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from soundmark.core.domain.tenancy.organization import Organization
from soundmark.core.domain.tenancy.scope import Role, TenantScope
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.paging import Position

_EXPORT_LOCK: Final = 5  # Kind of advisory lock: docs/locks.md.


async def insert(tx: Tx, *, organization_id: str, name: str, now: datetime) -> None:
    """Insert an organisation."""
    await tx.run(
        """
        INSERT INTO organizations (id, name, created_at)
        VALUES (%(organization_id)s, %(name)s, %(now)s)
        """,
        {"organization_id": organization_id, "name": name, "now": now},
    )


async def update_name(tx: Tx, scope: TenantScope, *, name: str, role: Role) -> Organization:
    """Set the organisation's name; return the organisation as a caller with `role` sees it."""
    renamed = await tx.one_or_none(
        Organization,
        """
        UPDATE organizations
           SET name = %(name)s
         WHERE id = %(organization_id)s
        RETURNING id, name, %(role)s::text AS role, created_at, deletion_requested_at, suspended_at
        """,
        {"organization_id": scope.organization_id, "name": name, "role": role},
    )
    assert renamed is not None, "an organisation with a held member exists"
    return renamed


async def find(tx: Tx, scope: TenantScope, *, role: Role) -> Organization | None:
    """Return the caller's organisation as somebody with `role` sees it."""
    return await tx.one_or_none(
        Organization,
        """
        SELECT id, name, %(role)s::text AS role, created_at, deletion_requested_at, suspended_at
          FROM organizations
         WHERE id = %(organization_id)s
        """,
        {"organization_id": scope.organization_id, "role": role},
    )


async def lock_export(tx: Tx, scope: TenantScope) -> bool:
    """Keep everybody else from exporting from the organisation until the transaction ends; False if somebody does.

    It waits for nobody. Lock order: docs/locks.md.
    """
    is_locked: bool = await tx.value(
        "SELECT pg_try_advisory_xact_lock(hashtextextended(%(organization_id)s, %(kind)s))",
        {"organization_id": scope.organization_id, "kind": _EXPORT_LOCK},
    )
    return is_locked


async def hold_open(tx: AnyTx, organization_id: str) -> bool:
    """Keep an organisation open until the transaction ends; return False if it is missing or being deleted.

    Lock order: docs/locks.md.
    """
    # The state is read from the row as locked, not as it was before waiting for the lock.
    found = await tx.value(
        """
        SELECT deletion_requested_at IS NULL
          FROM organizations
         WHERE id = %(organization_id)s
           FOR SHARE
        """,
        {"organization_id": organization_id},
    )
    return bool(found)


@dataclass(frozen=True, slots=True)
class LockedMarker:
    """When the deletion of a locked organisation or project was requested; None if it was not."""

    deletion_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether an organisation is not being deleted, and whether it is suspended."""

    is_open: bool
    is_suspended: bool


async def hold_standing(tx: AnyTx, organization_id: str) -> Standing | None:
    """Return the standing of an organisation, which nobody changes until the transaction ends; None for an unknown one.

    Lock order: docs/locks.md.
    """
    # As in `hold_open`, read from the row as locked.
    return await tx.one_or_none(
        Standing,
        """
        SELECT deletion_requested_at IS NULL AS is_open, suspended_at IS NOT NULL AS is_suspended
          FROM organizations
         WHERE id = %(organization_id)s
           FOR SHARE
        """,
        {"organization_id": organization_id},
    )


async def find_standing(tx: AnyTx, organization_id: str) -> Standing | None:
    """Return the standing of an organisation, which may change at once; None for an unknown one."""
    return await tx.one_or_none(
        Standing,
        """
        SELECT deletion_requested_at IS NULL AS is_open, suspended_at IS NOT NULL AS is_suspended
          FROM organizations
         WHERE id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )


async def hold_marker(tx: Tx, organization_id: str) -> LockedMarker | None:
    """Return the marker of an organisation, which nobody changes until the transaction ends; None for an unknown one.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        LockedMarker,
        """
        SELECT deletion_requested_at
          FROM organizations
         WHERE id = %(organization_id)s
           FOR SHARE
        """,
        {"organization_id": organization_id},
    )


async def lock_marker(tx: Tx, organization_id: str) -> LockedMarker | None:
    """Keep everybody from adding to the organisation until the transaction ends; None if there is no organisation.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        LockedMarker,
        """
        SELECT deletion_requested_at
          FROM organizations
         WHERE id = %(organization_id)s
           FOR NO KEY UPDATE
        """,
        {"organization_id": organization_id},
    )


async def lock_for_deletion(tx: Tx, organization_id: str) -> bool:
    """Keep everybody from reading or adding to the organisation under a lock; return False if it is gone.

    Lock order: docs/locks.md.
    """
    return bool(
        await tx.value(
            "SELECT true FROM organizations WHERE id = %(organization_id)s FOR UPDATE",
            {"organization_id": organization_id},
        )
    )


async def update_deletion_requested(tx: Tx, organization_id: str, *, now: datetime) -> None:
    """Mark a locked organisation as being deleted, for good."""
    await tx.run(
        "UPDATE organizations SET deletion_requested_at = %(now)s WHERE id = %(organization_id)s",
        {"organization_id": organization_id, "now": now},
    )


async def find_deletion_requested_at(tx: Tx, organization_id: str) -> datetime | None:
    """Return when the deletion of an organisation was requested."""
    requested_at: datetime | None = await tx.value(
        "SELECT deletion_requested_at FROM organizations WHERE id = %(organization_id)s",
        {"organization_id": organization_id},
    )
    return requested_at


async def list_of_subject(db: Database, *, subject_id: str, before: Position | None, limit: int) -> list[Organization]:
    """Return up to `limit` organisations that one person belongs to, newest first, in a transaction of its own."""
    return await db.all(
        Organization,
        """
        SELECT id, name, role, created_at, deletion_requested_at, suspended_at
          FROM organizations_of_member(%(subject_id)s)
         WHERE %(before_at)s::timestamptz IS NULL
            OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::text)
         ORDER BY created_at DESC, id DESC
         LIMIT %(limit)s
        """,
        {
            "subject_id": subject_id,
            "before_at": before and before.created_at,
            "before_id": before and before.id,
            "limit": limit,
        },
    )
