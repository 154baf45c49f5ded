"""The table `abuse_reports`."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.platform.abuse_report import AbuseCategory, AbuseReport, AbuseStatus
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_SELECT: Final[LiteralString] = """
    SELECT id, organization_id, xr_id, category, status, created_at, closed_at, sealed_text, sealed_contact, sealed_note
      FROM abuse_reports
"""


async def insert(tx: Tx, report: AbuseReport, *, is_claim: bool) -> None:
    """Insert a report; a claim names a Code for which nobody has looked yet."""
    await tx.run(
        """
        INSERT INTO abuse_reports
               (id, organization_id, xr_id, category, status, created_at, closed_at, sealed_text, sealed_contact,
                sealed_note, is_claim)
        VALUES (%(id)s, %(organization_id)s, %(xr_id)s, %(category)s, %(status)s, %(created_at)s, %(closed_at)s,
                %(sealed_text)s, %(sealed_contact)s, %(sealed_note)s, %(is_claim)s)
        """,
        {**asdict(report), "is_claim": is_claim},
    )


async def delete_without_organization(tx: Tx, report_id: str) -> bool:
    """Delete a report that was just inserted if no organisation has its Code; return whether it was deleted."""
    deleted_count = await tx.run(
        "DELETE FROM abuse_reports WHERE id = %(report_id)s AND organization_id IS NULL", {"report_id": report_id}
    )
    return deleted_count == 1


async def list_claims(tx: Tx, *, limit: int) -> list[tuple[str, str, AbuseCategory]]:
    """Return the ids of up to `limit` claims, the oldest first, each with that of its Code and its category."""
    return await tx.rows(
        """
        SELECT id, xr_id, category
          FROM abuse_reports
         WHERE is_claim
         ORDER BY created_at, id
         LIMIT %(limit)s
        """,
        {"limit": limit},
    )


async def list_organizations_of_codes(tx: Tx, xr_ids: Sequence[str]) -> list[tuple[str, str]]:
    """Return the ids of those Codes that exist, each with its organisation, in a transaction about every tenant.

    It asks each organisation by the primary key of `codes`, so that issuing need not keep an index for it. Give it few
    ids, and never on the request of somebody without a credential.
    """
    return await tx.rows(
        """
        SELECT found.xr_id, found.organization_id
          FROM organizations
         CROSS JOIN LATERAL (
               SELECT codes.xr_id, codes.organization_id
                 FROM codes
                WHERE codes.organization_id = organizations.id
                  AND codes.xr_id = ANY (%(xr_ids)s)
               ) AS found
        """,
        {"xr_ids": list(xr_ids)},
    )


async def update_claim(tx: Tx, report_id: str, *, organization_id: str) -> bool:
    """Make a claim a report about an organisation that is held; return False if somebody else settled it."""
    updated = await tx.run(
        """
        UPDATE abuse_reports
           SET organization_id = %(organization_id)s,
               is_claim = false
         WHERE id = %(report_id)s
           AND is_claim
        """,
        {"report_id": report_id, "organization_id": organization_id},
    )
    return updated == 1


async def update_claims_of(tx: Tx, organization_id: str) -> list[tuple[str, str, AbuseCategory]]:
    """Make the claims about Codes of an organisation that is held reports about it; return ids, Codes and categories.

    Lock order: docs/locks.md.
    """
    return await tx.rows(
        """
        UPDATE abuse_reports
           SET organization_id = %(organization_id)s,
               is_claim = false
         WHERE is_claim
           AND EXISTS (
               SELECT FROM codes
                WHERE codes.organization_id = %(organization_id)s
                  AND codes.xr_id = abuse_reports.xr_id
               )
        RETURNING id, xr_id, category
        """,
        {"organization_id": organization_id},
    )


async def delete_claim(tx: Tx, report_id: str) -> bool:
    """Delete a claim that fits no Code; return False if somebody else settled it."""
    deleted = await tx.run("DELETE FROM abuse_reports WHERE id = %(report_id)s AND is_claim", {"report_id": report_id})
    return deleted == 1


async def lock(tx: Tx, report_id: str) -> AbuseReport | None:
    """Return a report, which nobody else changes until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        AbuseReport, _SELECT + " WHERE id = %(report_id)s AND NOT is_claim FOR NO KEY UPDATE", {"report_id": report_id}
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
    """Return up to `limit` reports that are no claims, newest first."""
    return await tx.all(
        AbuseReport,
        _SELECT
        + """
         WHERE NOT is_claim
           AND (%(status)s::text IS NULL OR status = %(status)s)
        """
        + NEWEST_FIRST,
        {"status": status, **page_params(before, limit)},
    )
