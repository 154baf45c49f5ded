"""Counting and deleting everything of an organisation or, if a `project_id` is given, of one of its projects.

Foreign keys delete what depends on a row; only broadcasts, which name no tenant, are deleted by their tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, LiteralString

from soundmark.core.domain.tenancy.closure import ClosureSubject
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position
from soundmark.wire.deletion_certificate import DeletedOrganizationRows, DeletedProjectRows

_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
# The tables that are counted, each with the column that names a project; of the others a project has no row.
_PROJECT_COLUMNS: Final[dict[str, LiteralString]] = {
    **dict.fromkeys(DeletedOrganizationRows.model_fields, "NULL"),
    **dict.fromkeys(DeletedProjectRows.model_fields, "project_id"),
    "projects": "id",
}


def _counting(table: LiteralString, project_column: LiteralString) -> LiteralString:
    return (
        "(SELECT count(*) FROM "
        + table
        + " WHERE organization_id = %(organization_id)s AND (%(project_id)s::text IS NULL OR "
        + project_column
        + " = %(project_id)s)) AS "
        + table
    )


def _deleting(table: LiteralString) -> LiteralString:
    return (
        "DELETE FROM "
        + table
        + " WHERE organization_id = %(organization_id)s AND id = ANY(ARRAY(SELECT id FROM "
        + table
        + " WHERE organization_id = %(organization_id)s LIMIT %(limit)s))"
    )


_COUNT: Final[LiteralString] = "SELECT " + ", ".join(_counting(*each) for each in _PROJECT_COLUMNS.items())
# No foreign key deletes these. Acts first: what they become is deleted after them.
DELETE_WEBHOOKS: Final = tuple(_deleting(table) for table in ("webhook_acts", "webhook_events", "webhook_deliveries"))


@dataclass(frozen=True, slots=True)
class DeletedCode:
    """A Code that was deleted."""

    xr_id: str
    issued_at: datetime
    broadcast_token: str


async def count(tx: Tx, subject: ClosureSubject) -> DeletedOrganizationRows:
    """Count the rows of a subject; those of a project are only its own."""
    counts = await tx.one_or_none(
        DeletedOrganizationRows,
        _COUNT,
        {"organization_id": subject.organization_id, "project_id": subject.project_id},
    )
    assert counts is not None, "counts are one row"
    return counts


async def count_active_codes(tx: Tx, subject: ClosureSubject, *, now: datetime) -> int:
    """Count the Codes of a subject that are active at `now`."""
    active: int = await tx.value(
        """
        SELECT count(*)
          FROM codes
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
           AND revoked_at IS NULL
           AND expires_at > %(now)s
        """,
        {"organization_id": subject.organization_id, "project_id": subject.project_id, "now": now},
    )
    return active


async def list_requested_entries(tx: Tx, subject: ClosureSubject, *, limit: int) -> list[str]:
    """Return the ids of up to `limit` audit entries that have no outcome yet, oldest first."""
    ids: list[str] = await tx.value(
        """
        SELECT coalesce(array_agg(requested.id), '{}')
          FROM (SELECT id
                  FROM audit_entries
                 WHERE organization_id = %(organization_id)s
                   AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
                   AND outcome = 'requested'
                 ORDER BY created_at, id
                 LIMIT %(limit)s) AS requested
        """,
        {"organization_id": subject.organization_id, "project_id": subject.project_id, "limit": limit},
    )
    return ids


async def list_project_ids(tx: Tx, subject: ClosureSubject) -> list[str]:
    """Return the ids of the projects of a subject."""
    ids: list[str] = await tx.value(
        """
        SELECT coalesce(array_agg(id ORDER BY id), '{}')
          FROM projects
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR id = %(project_id)s)
        """,
        {"organization_id": subject.organization_id, "project_id": subject.project_id},
    )
    return ids


async def delete_codes(
    tx: Tx, organization_id: str, project_id: str, *, before: Position | None, limit: int
) -> list[DeletedCode]:
    """Delete up to `limit` Codes of a project, newest first, after position `before`; return them.

    Their broadcasts are left to `delete_broadcasts`. Lock order: docs/locks.md.
    """
    # The position skips the index entries of the Codes that were deleted before.
    return await tx.all(
        DeletedCode,
        """
        WITH chosen AS (
            SELECT xr_id
              FROM codes
             WHERE organization_id = %(organization_id)s
               AND project_id = %(project_id)s
               AND (issued_at, xr_id) < (%(issued_at)s::timestamptz, %(xr_id)s::text)
             ORDER BY issued_at DESC, xr_id DESC
             LIMIT %(limit)s
        ), locked AS (
            SELECT xr_id
              FROM codes
             WHERE organization_id = %(organization_id)s
               AND xr_id IN (SELECT xr_id FROM chosen)
             ORDER BY xr_id
               FOR UPDATE
        )
        DELETE FROM codes
         USING locked
         WHERE codes.organization_id = %(organization_id)s
           AND codes.xr_id = locked.xr_id
        RETURNING codes.xr_id, codes.issued_at, codes.broadcast_token
        """,
        {
            "organization_id": organization_id,
            "project_id": project_id,
            "issued_at": _END_OF_TIME if before is None else before.created_at,
            "xr_id": "" if before is None else before.id,
            "limit": limit,
        },
    )


async def delete_broadcasts(tx: Tx, tokens: Sequence[str]) -> None:
    """Delete the broadcasts of deleted Codes, so that nothing resolves them."""
    await tx.run("DELETE FROM broadcasts WHERE token = ANY(%(tokens)s::text[])", {"tokens": list(tokens)})


async def delete_decode_certificates(tx: Tx, subject: ClosureSubject, *, limit: int) -> int:
    """Delete up to `limit` decode certificates of a subject; return their number."""
    return await tx.run(
        """
        DELETE FROM decode_certificates
         WHERE organization_id = %(organization_id)s
           AND id = ANY(ARRAY(SELECT id
                                FROM decode_certificates
                               WHERE organization_id = %(organization_id)s
                                 AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
                               LIMIT %(limit)s))
        """,
        {"organization_id": subject.organization_id, "project_id": subject.project_id, "limit": limit},
    )


async def delete_audit_seals(tx: Tx, organization_id: str, *, limit: int) -> int:
    """Delete up to `limit` seals of an organisation's audit log, oldest first, but not the last; return their number.

    The last seal must stay as long as entries are written, because the next one is linked to it.
    """
    return await tx.run(
        """
        DELETE FROM audit_seals
         WHERE organization_id = %(organization_id)s
           AND position < (SELECT least(min(position) + %(limit)s, max(position))
                             FROM audit_seals
                            WHERE organization_id = %(organization_id)s)
        """,
        {"organization_id": organization_id, "limit": limit},
    )


async def delete_audit_entries(tx: Tx, organization_id: str, *, limit: int) -> int:
    """Delete up to `limit` audit entries of an organisation, newest first; return their number."""
    return await tx.run(
        """
        DELETE FROM audit_entries
         WHERE organization_id = %(organization_id)s
           AND id IN (SELECT id
                        FROM audit_entries
                       WHERE organization_id = %(organization_id)s
                       ORDER BY created_at DESC, id DESC
                       LIMIT %(limit)s)
        """,
        {"organization_id": organization_id, "limit": limit},
    )


async def lock_members(tx: Tx, organization_id: str) -> None:
    """Wait for every command of a member, and keep the next ones waiting. Lock order: docs/locks.md."""
    await tx.run(
        "SELECT 1 FROM members WHERE organization_id = %(organization_id)s ORDER BY subject_id FOR UPDATE",
        {"organization_id": organization_id},
    )


async def lock_api_keys(tx: Tx, subject: ClosureSubject) -> None:
    """Wait for every command of an API key, and keep the next ones waiting. Lock order: docs/locks.md."""
    await tx.run(
        """
        SELECT 1
          FROM api_keys
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
         ORDER BY id
           FOR UPDATE
        """,
        {"organization_id": subject.organization_id, "project_id": subject.project_id},
    )


async def lock_campaigns(tx: Tx, subject: ClosureSubject) -> None:
    """Wait for every command on a campaign, and keep the next ones waiting. Lock order: docs/locks.md."""
    await tx.run(
        """
        SELECT 1
          FROM campaigns
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
         ORDER BY id
           FOR UPDATE
        """,
        {"organization_id": subject.organization_id, "project_id": subject.project_id},
    )


async def delete_project(tx: Tx, organization_id: str, project_id: str) -> None:
    """Delete a project, and all that depends on it but broadcasts."""
    await tx.run(
        "DELETE FROM projects WHERE organization_id = %(organization_id)s AND id = %(project_id)s",
        {"organization_id": organization_id, "project_id": project_id},
    )


async def delete_organization(tx: Tx, organization_id: str) -> None:
    """Delete an organisation, and all that depends on it but broadcasts."""
    await tx.run("DELETE FROM organizations WHERE id = %(organization_id)s", {"organization_id": organization_id})


async def delete_some(tx: Tx, statement: LiteralString, organization_id: str, *, limit: int) -> int:
    """Delete up to `limit` rows of an organisation with one of `DELETE_WEBHOOKS`; return their number."""
    return await tx.run(statement, {"organization_id": organization_id, "limit": limit})


async def delete_jobs(tx: Tx, organization_id: str) -> None:
    """Delete the jobs that concern an organisation, except those that run now, which find nothing to do."""
    await tx.run(
        """
        DELETE FROM procrastinate_jobs
         WHERE args ->> 'organization_id' = %(organization_id)s
           AND status <> 'doing'
        """,
        {"organization_id": organization_id},
    )
