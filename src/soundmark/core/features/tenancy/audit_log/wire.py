"""What is answered about the audit log, as JSON, as lines of JSON and as CSV."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from soundmark.core.domain.tenancy.audit import AuditEntry, AuditOutcome
from soundmark.core.domain.tenancy.audit_chain import Verification
from soundmark.core.domain.tenancy.scope import ActorType
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import Timestamp, Wire

CSV_COLUMNS: Final = (
    "id",
    "organization_id",
    "project_id",
    "action",
    "actor_type",
    "actor_id",
    "outcome",
    "metadata",
    "created_at",
    "finalised_at",
)
# A spreadsheet reads a cell that begins with one of these, wide forms included, as a formula (OWASP, CSV Injection).
_FORMULA_BEGINS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")


class ActorView(Wire):
    """Who did it: a person's subject id, a server key's id, or a part of the service."""

    type: ActorType
    id: str


class AuditEntryView(Wire):
    """What somebody did in an organisation."""

    id: str
    organization_id: str
    project_id: str | None
    action: str
    actor: ActorView
    outcome: Annotated[AuditOutcome, Field(description="`requested` until it is known how it ended.")]
    metadata: Annotated[dict[str, Any], Field(description="Ids, counts, names and states; never a secret.")]
    created_at: Timestamp
    finalised_at: Timestamp | None


class AuditEntryPage(Wire):
    """Audit entries, newest first."""

    data: list[AuditEntryView]
    next_cursor: str | None


class AuditVerification(Wire):
    """Whether the audit log is what was written."""

    verified: Annotated[bool, Field(description="Whether each entry is as it was sealed, or waits for its seal.")]
    entries: Annotated[int, Field(description="How many entries there are.")]
    unsealed: Annotated[int, Field(description="How many of them are so new that they are not sealed yet.")]
    first_broken: Annotated[
        str | None, Field(description="The entry at the first place that does not hold; null where none can be named.")
    ]


def entry_view(entry: AuditEntry) -> AuditEntryView:
    """What is answered of one entry."""
    return AuditEntryView(
        id=entry.id,
        organization_id=entry.organization_id,
        project_id=entry.project_id,
        action=entry.action,
        actor=ActorView(type=entry.actor_type, id=entry.actor_id),
        outcome=entry.outcome,
        metadata=_metadata(entry.metadata),
        created_at=entry.created_at,
        finalised_at=entry.finalised_at,
    )


def verification_view(found: Verification) -> AuditVerification:
    """What is answered of a verification."""
    return AuditVerification(
        verified=found.is_verified, entries=found.entries, unsealed=found.unsealed, first_broken=found.first_broken
    )


def json_lines(entries: Sequence[AuditEntry]) -> bytes:
    """A line of JSON for each entry."""
    return b"".join(entry_view(entry).model_dump_json().encode() + b"\n" for entry in entries)


def csv_head() -> bytes:
    """The names of the columns."""
    return _csv([CSV_COLUMNS])


def csv_lines(entries: Sequence[AuditEntry]) -> bytes:
    """A line of CSV (RFC 4180) for each entry: every cell in quotes, none that a spreadsheet would calculate."""
    return _csv([tuple(map(_harmless, _cells(entry))) for entry in entries])


def _cells(entry: AuditEntry) -> tuple[str, ...]:
    return (
        entry.id,
        entry.organization_id,
        entry.project_id or "",
        entry.action,
        entry.actor_type,
        entry.actor_id,
        entry.outcome,
        entry.metadata,
        format_timestamp(entry.created_at),
        "" if entry.finalised_at is None else format_timestamp(entry.finalised_at),
    )


def _harmless(cell: str) -> str:
    """The cell, behind an apostrophe where it could be taken for a formula."""
    is_formula = cell.startswith(_FORMULA_BEGINS) or cell.lstrip().startswith(_FORMULA_BEGINS)
    return f"'{cell}" if is_formula else cell


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def _metadata(text: str) -> dict[str, Any]:
    """The object that was written. What somebody altered in the database must not hide all the other entries."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"unreadable": text}
