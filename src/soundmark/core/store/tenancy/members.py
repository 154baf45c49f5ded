"""The table `members`."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.tenancy.member import Member
from soundmark.core.domain.tenancy.scope import Role, TenantScope
from soundmark.kit.postgres.arrays import text_array
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.paging import page_params
from soundmark.kit.postgres.shared_connection import SharedConnection
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.paging import Position

# Kinds of advisory locks: docs/locks.md.
_ROLES_LOCK: Final = 1
_OWNED_LOCK: Final = 4
_SELECT: Final[LiteralString] = """
    SELECT subject_id, email, role, created_at
      FROM members
"""


async def insert(tx: Tx, *, organization_id: str, subject_id: str, email: str, role: Role, now: datetime) -> None:
    """Insert a member."""
    await tx.run(
        """
        INSERT INTO members (organization_id, subject_id, email, role, created_at)
        VALUES (%(organization_id)s, %(subject_id)s, %(email)s, %(role)s, %(now)s)
        """,
        {"organization_id": organization_id, "subject_id": subject_id, "email": email, "role": role, "now": now},
    )


async def insert_if_new(
    tx: Tx, *, organization_id: str, subject_id: str, email: str, role: Role, now: datetime
) -> bool:
    """Insert a member; return False and change nothing if the person is already a member."""
    touched = await tx.run(
        """
        INSERT INTO members (organization_id, subject_id, email, role, created_at)
        VALUES (%(organization_id)s, %(subject_id)s, %(email)s, %(role)s, %(now)s)
        ON CONFLICT ON CONSTRAINT members_pkey DO NOTHING
        """,
        {"organization_id": organization_id, "subject_id": subject_id, "email": email, "role": role, "now": now},
    )
    return touched == 1


async def find_roles(reads: SharedConnection, pairs: Sequence[tuple[str, str]]) -> list[Role | None]:
    """Return the role for each pair of an organisation and a person, in the order given.

    The role is None if the person is not a member or the organisation does not exist. Every request needs one, so this
    takes a single round trip, in a transaction of its own.
    """
    statement: Final = """
        SELECT found.role
          FROM unnest($1::text[], $2::text[])
               WITH ORDINALITY AS asked (organization_id, subject_id, place)
               LEFT JOIN LATERAL role_of_member(asked.organization_id, asked.subject_id) AS found (role) ON true
         ORDER BY asked.place
        """
    organization_ids = text_array(organization_id for organization_id, _ in pairs)
    subject_ids = text_array(subject_id for _, subject_id in pairs)
    (rows,) = await reads.run(Call(statement, (organization_ids, subject_ids)), is_repeatable=True)
    return [role for (role,) in rows]


async def hold_role(tx: AnyTx, scope: TenantScope, subject_id: str) -> Role | None:
    """Return the role of one member and keep it unchanged until the transaction ends; None if there is no such member.

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


async def lock_roles(tx: Tx, scope: TenantScope) -> None:
    """Keep everybody else from changing or removing members of the organisation until the transaction ends.

    Two members who change each other would otherwise each hold their own row and wait for the other's, and two owners
    who leave would each count the other. Lock order: docs/locks.md.
    """
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _ROLES_LOCK, "organization_id": scope.organization_id},
    )


async def lock_owned(tx: Tx, subject_id: str) -> None:
    """Keep everybody else from making this person an owner until the transaction ends. Lock order: docs/locks.md."""
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(subject_id)s))",
        {"kind": _OWNED_LOCK, "subject_id": subject_id},
    )


async def count_owned(tx: Tx, subject_id: str) -> int:
    """Return how many organisations a person owns; the transaction must have begun with them as its `subject`."""
    count: int = await tx.value(
        """
        SELECT count(*)
          FROM members
         WHERE subject_id = %(subject_id)s
           AND role = 'owner'
        """,
        {"subject_id": subject_id},
    )
    return count


async def lock(tx: Tx, scope: TenantScope, subject_id: str) -> Member | None:
    """Lock one member until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        Member,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
           FOR NO KEY UPDATE
        """,
        {"organization_id": scope.organization_id, "subject_id": subject_id},
    )


async def hold_owner_beside(tx: Tx, scope: TenantScope, subject_id: str) -> bool:
    """Keep the organisation's other owners unchanged until the transaction ends; return False if there are none.

    Lock order: docs/locks.md.
    """
    found = await tx.all(
        Member,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND subject_id <> %(subject_id)s
           AND role = 'owner'
         ORDER BY subject_id
           FOR SHARE
        """,
        {"organization_id": scope.organization_id, "subject_id": subject_id},
    )
    return bool(found)


async def list_owners(tx: Tx, organization_id: str) -> list[Member]:
    """Return the organisation's owners."""
    return await tx.all(
        Member,
        _SELECT + "WHERE organization_id = %(organization_id)s AND role = 'owner' ORDER BY subject_id",
        {"organization_id": organization_id},
    )


async def update_role(tx: Tx, scope: TenantScope, subject_id: str, *, role: Role) -> None:
    """Set the role of one member."""
    await tx.run(
        """
        UPDATE members
           SET role = %(role)s
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
        """,
        {"organization_id": scope.organization_id, "subject_id": subject_id, "role": role},
    )


async def delete(tx: Tx, scope: TenantScope, subject_id: str) -> None:
    """Delete one member."""
    await tx.run(
        """
        DELETE FROM members
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
        """,
        {"organization_id": scope.organization_id, "subject_id": subject_id},
    )


async def list_newest_first(tx: Tx, scope: TenantScope, *, before: Position | None, limit: int) -> list[Member]:
    """Return up to `limit` members of the organisation, newest first, then by descending subject."""
    return await tx.all(
        Member,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND (created_at, subject_id) < (%(before_at)s::timestamptz, %(before_id)s::text)
         ORDER BY created_at DESC, subject_id DESC
         LIMIT %(limit)s
        """,
        {"organization_id": scope.organization_id, **page_params(before, limit)},
    )


def list_oldest_first(tx: Tx, scope: TenantScope, *, rows_max: int) -> AsyncGenerator[list[Member], None]:
    """Yield pages of the members of the organisation, oldest first, then by the bytes of their subjects."""
    # The collation of the database may be another one, and an archive is the same everywhere.
    return tx.pages(
        Member,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
         ORDER BY created_at, subject_id COLLATE "C"
        """,
        {"organization_id": scope.organization_id},
        rows_max=rows_max,
    )
