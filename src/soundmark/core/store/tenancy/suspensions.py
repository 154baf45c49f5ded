"""The suspension of an organisation: in `organizations`, and in `suspended_organizations` for resolutions."""

import re
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.audience.integration import Suspension
from soundmark.core.domain.tenancy.organization import OrganizationStatus, PlatformOrganization
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_COLUMNS: Final[LiteralString] = "id, name, created_at, deletion_requested_at, suspended_at, suspension_reason"
_ID: Final = re.compile(r"org_[A-Za-z0-9_-]{22}", re.ASCII)
_ASCII_CAPITALS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


async def lock(tx: Tx, organization_id: str) -> PlatformOrganization | None:
    """Return an organisation, and keep everybody from adding to it until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        PlatformOrganization,
        "SELECT " + _COLUMNS + " FROM organizations WHERE id = %(organization_id)s FOR NO KEY UPDATE",
        {"organization_id": organization_id},
    )


async def update_suspended(
    tx: Tx, organization_id: str, *, suspended_at: datetime, reason: str
) -> PlatformOrganization:
    """Suspend a locked organisation, or replace the reason: none of its Codes resolves from the commit on."""
    suspended = await tx.one_or_none(
        PlatformOrganization,
        """
        WITH listed AS (
            INSERT INTO suspended_organizations (organization_id)
            VALUES (%(organization_id)s)
                ON CONFLICT (organization_id) DO NOTHING
        )
        UPDATE organizations
           SET suspended_at = %(suspended_at)s,
               suspension_reason = %(reason)s,
               suspension_revision = suspension_revision + 1
         WHERE id = %(organization_id)s
        RETURNING id, name, created_at, deletion_requested_at, suspended_at, suspension_reason
        """,
        {"organization_id": organization_id, "suspended_at": suspended_at, "reason": reason},
    )
    assert suspended is not None, "the row is locked"
    return suspended


async def update_restored(tx: Tx, organization_id: str) -> PlatformOrganization:
    """End the suspension of a locked organisation: its Codes resolve from the commit on."""
    restored = await tx.one_or_none(
        PlatformOrganization,
        """
        WITH unlisted AS (
            DELETE FROM suspended_organizations
             WHERE organization_id = %(organization_id)s
        )
        UPDATE organizations
           SET suspended_at = NULL,
               suspension_reason = NULL,
               suspension_revision = suspension_revision + 1
         WHERE id = %(organization_id)s
        RETURNING id, name, created_at, deletion_requested_at, suspended_at, suspension_reason
        """,
        {"organization_id": organization_id},
    )
    assert restored is not None, "the row is locked"
    return restored


async def find(tx: Tx, organization_id: str) -> Suspension | None:
    """Return what Audience should know of an organisation; None for an unknown one."""
    return await tx.one_or_none(
        Suspension,
        """
        SELECT suspended_at IS NOT NULL AS is_suspended, suspension_revision AS revision
          FROM organizations
         WHERE id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )


async def list_organizations(
    tx: Tx, *, search: str | None, status: OrganizationStatus | None, before: Position | None, limit: int
) -> list[PlatformOrganization]:
    """Return up to `limit` organisations, newest first.

    `search` is a whole id, which finds no name, or the beginning of a name, in which the case of ASCII letters does not
    matter.
    """
    return await tx.all(
        PlatformOrganization,
        """
        SELECT id, name, created_at, deletion_requested_at, suspended_at, suspension_reason
          FROM organizations
         WHERE (%(search)s::text IS NULL
                OR CASE WHEN %(is_id)s THEN id = %(search)s
                        ELSE starts_with(translate(name, %(capitals)s, lower(%(capitals)s)),
                                         translate(%(search)s, %(capitals)s, lower(%(capitals)s)))
                   END)
           AND CASE %(status)s::text
                    WHEN 'closing' THEN deletion_requested_at IS NOT NULL
                    WHEN 'suspended' THEN suspended_at IS NOT NULL
                    WHEN 'active' THEN deletion_requested_at IS NULL AND suspended_at IS NULL
                    ELSE true
               END
        """
        + NEWEST_FIRST,
        {
            "search": search,
            "is_id": search is not None and _ID.fullmatch(search) is not None,
            "capitals": _ASCII_CAPITALS,
            "status": status,
            **page_params(before, limit),
        },
    )
