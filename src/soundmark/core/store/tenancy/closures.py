"""The table `closures`."""

from dataclasses import asdict
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.tenancy.closure import Closure, ClosureSubject, Phase, PurgedCounts
from soundmark.kit.postgres.transaction import Tx

_SELECT: Final[LiteralString] = """
    SELECT organization_id, project_id, certificate_id, operation_id, phase, requested_at, deleted_codes,
           deleted_audit_entries, deleted_certificates, purged_integrations, purged_events, purged_integrity_days,
           purged_legacy_days, purged_spent_proofs
      FROM closures
"""


async def insert(tx: Tx, subject: ClosureSubject, *, certificate_id: str, operation_id: str, now: datetime) -> None:
    """Insert a closure that was just requested."""
    await tx.run(
        """
        INSERT INTO closures (organization_id, subject_id, project_id, certificate_id, operation_id, phase,
                              requested_at, worked_at)
        VALUES (%(organization_id)s, %(subject_id)s, %(project_id)s, %(certificate_id)s, %(operation_id)s, 'requested',
                %(now)s, %(now)s)
        """,
        {
            "organization_id": subject.organization_id,
            "subject_id": subject.id,
            "project_id": subject.project_id,
            "certificate_id": certificate_id,
            "operation_id": operation_id,
            "now": now,
        },
    )


async def find(tx: Tx, subject: ClosureSubject) -> Closure | None:
    """Return the closure of a subject, if one is under way."""
    return await tx.one_or_none(
        Closure,
        _SELECT + "WHERE organization_id = %(organization_id)s AND subject_id = %(subject_id)s",
        {"organization_id": subject.organization_id, "subject_id": subject.id},
    )


async def lock(tx: Tx, subject: ClosureSubject) -> Closure | None:
    """Return the closure of a subject, and keep it from changing until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        Closure,
        _SELECT + "WHERE organization_id = %(organization_id)s AND subject_id = %(subject_id)s FOR UPDATE",
        {"organization_id": subject.organization_id, "subject_id": subject.id},
    )


async def update_purged(tx: Tx, subject: ClosureSubject, purged: PurgedCounts, *, now: datetime) -> None:
    """Note that Audience has purged the subject of a locked closure, and how much it had."""
    await tx.run(
        """
        UPDATE closures
           SET phase = 'purged',
               worked_at = %(now)s,
               purged_integrations = %(integrations)s,
               purged_events = %(events)s,
               purged_integrity_days = %(integrity_days)s,
               purged_legacy_days = %(legacy_days)s,
               purged_spent_proofs = %(spent_proofs)s
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
        """,
        {
            "organization_id": subject.organization_id,
            "subject_id": subject.id,
            "now": now,
            **asdict(purged),
        },
    )


async def update_phase(tx: Tx, subject: ClosureSubject, phase: Phase, *, now: datetime) -> None:
    """Set the phase of a locked closure."""
    await tx.run(
        """
        UPDATE closures
           SET phase = %(phase)s,
               worked_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
        """,
        {"organization_id": subject.organization_id, "subject_id": subject.id, "phase": phase, "now": now},
    )


async def update_deleted(
    tx: Tx,
    subject: ClosureSubject,
    *,
    codes: int = 0,
    audit_entries: int = 0,
    certificates: int = 0,
    now: datetime,
) -> None:
    """Add to the numbers of rows that a locked closure has deleted."""
    await tx.run(
        """
        UPDATE closures
           SET deleted_codes = deleted_codes + %(codes)s,
               deleted_audit_entries = deleted_audit_entries + %(audit_entries)s,
               deleted_certificates = deleted_certificates + %(certificates)s,
               worked_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
        """,
        {
            "organization_id": subject.organization_id,
            "subject_id": subject.id,
            "codes": codes,
            "audit_entries": audit_entries,
            "certificates": certificates,
            "now": now,
        },
    )


async def delete(tx: Tx, subject: ClosureSubject) -> None:
    """Delete a closure that is complete."""
    await tx.run(
        "DELETE FROM closures WHERE organization_id = %(organization_id)s AND subject_id = %(subject_id)s",
        {"organization_id": subject.organization_id, "subject_id": subject.id},
    )


async def list_projects(tx: Tx, organization_id: str) -> list[str]:
    """Return the ids of the organisation's projects that are being deleted."""
    ids: list[str] = await tx.value(
        """
        SELECT coalesce(array_agg(project_id ORDER BY project_id), '{}')
          FROM closures
         WHERE organization_id = %(organization_id)s
           AND project_id IS NOT NULL
        """,
        {"organization_id": organization_id},
    )
    return ids


async def find_deleting(tx: Tx, organization_id: str, project_id: str | None) -> str | None:
    """Return what is being deleted row by row of a project, or with None of the organisation and all its projects.

    It is the organisation or a project; None if nothing is.
    """
    subject_id: str | None = await tx.value(
        """
        SELECT min(subject_id)
          FROM closures
         WHERE organization_id = %(organization_id)s
           AND phase = 'deleting'
           AND (%(project_id)s::text IS NULL OR coalesce(project_id, %(project_id)s) = %(project_id)s)
        """,
        {"organization_id": organization_id, "project_id": project_id},
    )
    return subject_id


async def list_abandoned(tx: Tx, *, before: datetime, after_id: str, limit: int) -> list[Closure]:
    """Return up to `limit` closures, of every tenant, that nobody has worked on since `before`, after the purge.

    They are in the order of their subjects' ids, and begin after `after_id`.
    """
    return await tx.all(
        Closure,
        _SELECT
        + """
         WHERE phase IN ('purged', 'deleting')
           AND worked_at < %(before)s
           AND subject_id > %(after_id)s
         ORDER BY subject_id
         LIMIT %(limit)s
        """,
        {"before": before, "after_id": after_id, "limit": limit},
    )
