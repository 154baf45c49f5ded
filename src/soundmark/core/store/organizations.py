"""The tables `organizations` and `members`."""

from datetime import datetime

from soundmark.core.domain.organization import Organization
from soundmark.core.domain.scope import Role
from soundmark.kit.paging import Position
from soundmark.kit.postgres import Tx


async def insert(tx: Tx, *, organization_id: str, name: str, now: datetime) -> None:
    """Record a new organisation."""
    await tx.run(
        """
        INSERT INTO organizations (id, name, created_at)
        VALUES (%(organization_id)s, %(name)s, %(now)s)
        """,
        {"organization_id": organization_id, "name": name, "now": now},
    )


async def insert_member(  # noqa: PLR0913 - one argument for each column
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


async def list_of_subject(tx: Tx, *, subject_id: str, before: Position | None, limit: int) -> list[Organization]:
    """Up to `limit` organisations that one person belongs to, newest first."""
    return await tx.all(
        Organization,
        """
        SELECT o.id, o.name, m.role, o.created_at, o.deletion_requested_at
          FROM members m
          JOIN organizations o ON o.id = m.organization_id
         WHERE m.subject_id = %(subject_id)s
           AND (%(before_at)s::timestamptz IS NULL
                OR (o.created_at, o.id) < (%(before_at)s::timestamptz, %(before_id)s::text))
         ORDER BY o.created_at DESC, o.id DESC
         LIMIT %(limit)s
        """,
        {
            "subject_id": subject_id,
            "before_at": before and before.created_at,
            "before_id": before and before.id,
            "limit": limit,
        },
    )
