"""The table `abuse_reports`."""

from dataclasses import asdict
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.platform.abuse_report import AbuseReport, AbuseStatus
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_SELECT: Final[LiteralString] = """
    SELECT id, organization_id, xr_id, category, status, created_at, closed_at, sealed_text, sealed_contact, sealed_note
      FROM abuse_reports
"""


async def insert(tx: Tx, report: AbuseReport) -> None:
    """Insert a report."""
    await tx.run(
        """
        INSERT INTO abuse_reports
               (id, organization_id, xr_id, category, status, created_at, closed_at, sealed_text, sealed_contact,
                sealed_note)
        VALUES (%(id)s, %(organization_id)s, %(xr_id)s, %(category)s, %(status)s, %(created_at)s, %(closed_at)s,
                %(sealed_text)s, %(sealed_contact)s, %(sealed_note)s)
        """,
        asdict(report),
    )


async def delete_without_organization(tx: Tx, report_id: str) -> bool:
    """Delete a report that was just inserted if no organisation has its Code; return whether it was deleted."""
    deleted_count = await tx.run(
        "DELETE FROM abuse_reports WHERE id = %(report_id)s AND organization_id IS NULL", {"report_id": report_id}
    )
    return deleted_count == 1


async def find_organization_of_code(tx: Tx, xr_id: str) -> str | None:
    """Return the organisation of a Code, in a transaction about every tenant.

    It asks each organisation by the primary key of `codes`, so that issuing need not keep an index for it. Whether
    there is such a Code or not, it does the same work.
    """
    organization_id: str | None = await tx.value(
        """
        SELECT max(found.organization_id)
          FROM organizations
         CROSS JOIN LATERAL (
               SELECT codes.organization_id
                 FROM codes
                WHERE codes.organization_id = organizations.id
                  AND codes.xr_id = %(xr_id)s
                LIMIT 1
               ) AS found
        """,
        {"xr_id": xr_id},
    )
    return organization_id


async def lock(tx: Tx, report_id: str) -> AbuseReport | None:
    """Return a report, which nobody else changes until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        AbuseReport, _SELECT + " WHERE id = %(report_id)s FOR NO KEY UPDATE", {"report_id": report_id}
    )


async def update(tx: Tx, report: AbuseReport) -> None:
    """Store the status and the note of a locked report."""
    await tx.run(
        """
        UPDATE abuse_reports
           SET status = %(status)s,
               closed_at = %(closed_at)s,
               sealed_note = %(sealed_note)s
         WHERE id = %(id)s
        """,
        asdict(report),
    )


async def update_orphaned(tx: Tx, organization_id: str, *, now: datetime) -> None:
    """Close the reports about an organisation that is being deleted, and forget its name. Lock order: docs/locks.md."""
    await tx.run(
        """
        UPDATE abuse_reports
           SET organization_id = NULL,
               status = 'closed',
               closed_at = coalesce(closed_at, %(now)s)
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id, "now": now},
    )


async def update_forgotten(tx: Tx, *, closed_before: datetime, created_before: datetime, limit: int) -> int:
    """Delete what people wrote in up to `limit` reports that were closed or made so long ago; return their number.

    Lock order: docs/locks.md.
    """
    return await tx.run(
        """
        UPDATE abuse_reports
           SET sealed_text = NULL, sealed_contact = NULL, sealed_note = NULL
         WHERE id IN (
               SELECT id
                 FROM abuse_reports
                WHERE (sealed_text IS NOT NULL OR sealed_contact IS NOT NULL OR sealed_note IS NOT NULL)
                  AND (closed_at <= %(closed_before)s OR created_at <= %(created_before)s)
                ORDER BY id
                LIMIT %(limit)s
                  FOR NO KEY UPDATE SKIP LOCKED
               )
        """,
        {"closed_before": closed_before, "created_before": created_before, "limit": limit},
    )


async def list_newest_first(
    tx: Tx, *, status: AbuseStatus | None, before: Position | None, limit: int
) -> list[AbuseReport]:
    """Return up to `limit` reports, newest first."""
    return await tx.all(
        AbuseReport,
        _SELECT
        + """
         WHERE (%(before_at)s::timestamptz IS NULL
                OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::text))
           AND (%(status)s::text IS NULL OR status = %(status)s)
         ORDER BY created_at DESC, id DESC
         LIMIT %(limit)s
        """,
        {
            "status": status,
            "before_at": before and before.created_at,
            "before_id": before and before.id,
            "limit": limit,
        },
    )
