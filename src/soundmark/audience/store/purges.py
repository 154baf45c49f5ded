"""Deleting everything of a tenant, and the table `purges`.

A subject is an organisation, or with a `project_id` one of its projects alone.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final, LiteralString

from soundmark.audience.domain.purge import Purge, PurgeCounts, PurgeSubject
from soundmark.kit.postgres.transaction import Tx

_TENANT_LOCK: Final = 3  # Kind of advisory lock: docs/locks.md.


async def hold_tenant(tx: Tx, organization_id: str) -> None:
    """Keep the purges of an organisation from beginning until the transaction ends. Lock order: docs/locks.md."""
    await tx.run(
        "SELECT pg_advisory_xact_lock_shared(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _TENANT_LOCK, "organization_id": organization_id},
    )


async def lock_tenant(tx: Tx, organization_id: str) -> None:
    """Wait for every command that adds rows for an organisation, and keep the next ones waiting.

    Lock order: docs/locks.md.
    """
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _TENANT_LOCK, "organization_id": organization_id},
    )


async def find_any(tx: Tx, digests: Sequence[bytes]) -> bool:
    """Return whether a purge of one of these subjects was begun, ever."""
    found: bool = await tx.value(
        "SELECT EXISTS (SELECT FROM purges WHERE subject_digest = ANY(%(digests)s))", {"digests": list(digests)}
    )
    return found


async def insert_if_absent(tx: Tx, operation_id: str, subject: PurgeSubject, *, now: datetime) -> None:
    """Insert a purge, unless the operation is known."""
    await tx.run(
        """
        INSERT INTO purges (operation_id, subject_digest, began_at)
        VALUES (%(operation_id)s, %(subject_digest)s, %(now)s)
            ON CONFLICT (operation_id) DO NOTHING
        """,
        {"operation_id": operation_id, "subject_digest": subject.digest(), "now": now},
    )


async def lock(tx: Tx, operation_id: str) -> Purge | None:
    """Return a purge, and keep its counts from changing until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        Purge,
        """
        SELECT operation_id, subject_digest, completed_at IS NOT NULL AS is_complete, integrations, events,
               integrity_days, legacy_days, spent_proofs
          FROM purges
         WHERE operation_id = %(operation_id)s
           FOR NO KEY UPDATE
        """,
        {"operation_id": operation_id},
    )


async def update_deleted(tx: Tx, operation_id: str, added: PurgeCounts) -> None:
    """Add to the numbers of rows that a locked purge has deleted."""
    await tx.run(
        """
        UPDATE purges
           SET integrations = integrations + %(integrations)s,
               events = events + %(events)s,
               integrity_days = integrity_days + %(integrity_days)s,
               legacy_days = legacy_days + %(legacy_days)s,
               spent_proofs = spent_proofs + %(spent_proofs)s
         WHERE operation_id = %(operation_id)s
        """,
        {"operation_id": operation_id, **asdict(added)},
    )


async def update_completed(tx: Tx, operation_id: str, *, now: datetime) -> None:
    """Note that a purge deleted everything."""
    await tx.run(
        "UPDATE purges SET completed_at = %(now)s WHERE operation_id = %(operation_id)s",
        {"operation_id": operation_id, "now": now},
    )


async def update_revoked(tx: Tx, subject: PurgeSubject, *, now: datetime) -> None:
    """Revoke every integration of the subject that is not revoked."""
    await tx.run(
        """
        UPDATE integrations
           SET revoked_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
           AND revoked_at IS NULL
        """,
        {**_params(subject), "now": now},
    )


async def lock_months(tx: Tx, organization_id: str) -> None:
    """Wait for the batches of events that are being recorded for an organisation. Lock order: docs/locks.md."""
    await tx.run(
        """
        SELECT 1
          FROM event_months
         WHERE organization_id = %(organization_id)s
         ORDER BY organization_id, mode, first_day
           FOR NO KEY UPDATE
        """,
        {"organization_id": organization_id},
    )


# Rows that belong to integrations, of which there may be millions. Each statement deletes up to `limit` of them, which
# it finds by the index that begins with the integration.
_OF_INTEGRATIONS: Final[LiteralString] = """
    (SELECT number
       FROM integrations
      WHERE organization_id = %(organization_id)s
        AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s))
"""


def _deleting(table: LiteralString) -> LiteralString:
    return (
        "DELETE FROM "
        + table
        + """
         WHERE ctid = ANY(ARRAY(
               SELECT each.ctid
                 FROM unnest(ARRAY"""
        + _OF_INTEGRATIONS
        + """) AS of_subject (number)
                CROSS JOIN LATERAL (
                      SELECT kept.ctid
                        FROM """
        + table
        + """ AS kept
                       WHERE kept.integration = of_subject.number
                       LIMIT %(limit)s
                ) AS each
                LIMIT %(limit)s))
        """
    )


DELETE_EVENTS: Final = _deleting("events")
DELETE_EVENT_IDS: Final = _deleting("event_ids")
DELETE_SPENT_PROOFS: Final = _deleting("spent_proofs")
DELETE_INTEGRITY_DAYS: Final = _deleting("integrity_days")
DELETE_MEASURED_CODES: Final = _deleting("measured_codes")


async def delete_some(tx: Tx, statement: LiteralString, subject: PurgeSubject, *, limit: int) -> int:
    """Delete up to `limit` rows with one of the statements above; return their number."""
    return await tx.run(statement, {**_params(subject), "limit": limit})


async def delete_legacy_days(tx: Tx, subject: PurgeSubject) -> int:
    """Delete the legacy counts of the subject; return the number of days."""
    return await tx.run(
        """
        DELETE FROM legacy_days
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
        """,
        _params(subject),
    )


async def delete_integrations(tx: Tx, subject: PurgeSubject) -> int:
    """Delete the integrations of the subject, which have no rows; return their number. Lock order: docs/locks.md."""
    return await tx.run(
        """
        DELETE FROM integrations
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
        """,
        _params(subject),
    )


async def delete_operations(tx: Tx, subject: PurgeSubject) -> None:
    """Forget the operations on integrations of the subject."""
    await tx.run(
        """
        DELETE FROM operations
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
        """,
        _params(subject),
    )


async def delete_months(tx: Tx, organization_id: str) -> None:
    """Delete the event counts of an organisation that has no integration. Lock order: docs/locks.md."""
    await tx.run(
        "DELETE FROM event_months WHERE organization_id = %(organization_id)s", {"organization_id": organization_id}
    )


async def delete_entitlements(tx: Tx, organization_id: str) -> None:
    """Delete the entitlements of an organisation."""
    await tx.run(
        "DELETE FROM entitlements WHERE organization_id = %(organization_id)s", {"organization_id": organization_id}
    )


async def delete_suspension(tx: Tx, organization_id: str) -> None:
    """Forget whether an organisation is suspended."""
    await tx.run(
        "DELETE FROM suspensions WHERE organization_id = %(organization_id)s", {"organization_id": organization_id}
    )


async def count_remaining(tx: Tx, subject: PurgeSubject, numbers: Sequence[int]) -> PurgeCounts:
    """Count the rows of the subject and of the integrations with these numbers, which it had.

    `events` counts every row that an event leaves: its own, its id and its Code's.
    """
    counts = await tx.one_or_none(
        PurgeCounts,
        """
        SELECT (SELECT count(*)
                  FROM integrations
                 WHERE organization_id = %(organization_id)s
                   AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)) AS integrations,
               (SELECT count(*) FROM events WHERE integration = ANY(%(numbers)s))
               + (SELECT count(*) FROM event_ids WHERE integration = ANY(%(numbers)s))
               + (SELECT count(*) FROM measured_codes WHERE integration = ANY(%(numbers)s)) AS events,
               (SELECT count(*) FROM integrity_days WHERE integration = ANY(%(numbers)s)) AS integrity_days,
               (SELECT count(*)
                  FROM legacy_days
                 WHERE organization_id = %(organization_id)s
                   AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)) AS legacy_days,
               (SELECT count(*) FROM spent_proofs WHERE integration = ANY(%(numbers)s)) AS spent_proofs
        """,
        {**_params(subject), "numbers": list(numbers)},
    )
    assert counts is not None, "counts are one row"
    return counts


async def list_numbers(tx: Tx, subject: PurgeSubject) -> list[int]:
    """Return the numbers of the integrations of the subject."""
    numbers: list[int] = await tx.value(
        """
        SELECT coalesce(array_agg(number ORDER BY number), '{}')
          FROM integrations
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
        """,
        _params(subject),
    )
    return numbers


def _params(subject: PurgeSubject) -> dict[str, Any]:
    return {"organization_id": subject.organization_id, "project_id": subject.project_id}
