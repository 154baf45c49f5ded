"""The table `members`."""

from datetime import datetime

from soundmark.core.domain.scope import Role, TenantScope
from soundmark.kit.postgres import Tx


async def insert(  # noqa: PLR0913 - one argument for each column
    tx: Tx, *, organization_id: str, subject_id: str, email: str, role: Role, now: datetime
) -> None:
    """Record a new member."""
    await tx.run(
        """
        INSERT INTO members (organization_id, subject_id, email, role, created_at)
        VALUES (%(organization_id)s, %(subject_id)s, %(email)s, %(role)s, %(now)s)
        """,
        {"organization_id": organization_id, "subject_id": subject_id, "email": email, "role": role, "now": now},
    )


async def find_role(tx: Tx, *, organization_id: str, subject_id: str) -> Role | None:
    """The role of one person in one organisation; None for a stranger and for an organisation that is not there."""
    role: Role | None = await tx.value(
        """
        SELECT role
          FROM members
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
        """,
        {"organization_id": organization_id, "subject_id": subject_id},
    )
    return role


async def hold_role(tx: Tx, scope: TenantScope, subject_id: str) -> Role | None:
    """The role of one member, which nobody changes until the transaction ends; None for a stranger.

    Lock order: docs/locks.md.
    """
    role: Role | None = await tx.value(
        """
        SELECT role
          FROM members
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
           FOR SHARE
        """,
        {"organization_id": scope.organization_id, "subject_id": subject_id},
    )
    return role
