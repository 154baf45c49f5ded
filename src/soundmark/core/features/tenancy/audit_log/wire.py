"""The response shapes of the audit log: JSON, NDJSON and CSV."""

import csv
import io
from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from soundmark.core.domain.tenancy.audit import AuditEntry, AuditOutcome
from soundmark.core.domain.tenancy.audit_chain import LoggedHead, Verification, read_metadata
from soundmark.core.domain.tenancy.scope import ActorType
from soundmark.kit.text import base64url
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
    "position",
    "chain_hash",
)
# A spreadsheet reads a cell that begins with one of these, wide forms included, as a formula (OWASP, CSV Injection).
_FORMULA_BEGINS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")


class ActorView(Wire):
    """Who acted: a person (subject id), an API key (its id) or a part of the service."""

    type: ActorType
    id: str


class AuditEntryView(Wire):
    """A record of one action in an organisation."""

    id: str
    organization_id: str
    project_id: str | None
    action: str
    actor: ActorView
    outcome: Annotated[AuditOutcome, Field(description="`requested` until the result is known.")]
    metadata: Annotated[dict[str, Any], Field(description="Ids, counts, names and states; never a secret.")]
    created_at: Timestamp
    finalised_at: Timestamp | None
    position: Annotated[
        int | None,
        Field(description="The entry's place in the organisation's chain: 1, 2, 3, …; null until it is chained."),
    ]
    chain_hash: Annotated[
        str | None,
        Field(
            description=(
                "base64url of SHA-256 over the bytes of the hash before it, 32 zero bytes at the beginning, and the "
                "RFC 8785 bytes of this entry without `chain_hash`; null until the entry is chained."
            )
        ),
    ]


class AuditEntryPage(Wire):
    """Audit entries, newest first."""

    data: list[AuditEntryView]
    next_cursor: str | None


class LoggedHeadView(Wire):
    """A head of an audit chain: the hash of the entry at the position `entries`."""

    entries: int
    chain_hash: str


class AuditVerification(Wire):
    """The result of verifying an audit log."""

    verified: Annotated[bool, Field(description="Whether every sealed entry is unchanged and no entry is missing.")]
    entries: Annotated[int, Field(description="The number of entries.")]
    unsealed: Annotated[int, Field(description="The number of entries that are too new to be sealed.")]
    first_broken: Annotated[
        str | None, Field(description="The first entry at which the chain breaks; null if no entry can be named.")
    ]
    logged_head: Annotated[
        LoggedHeadView | None,
        Field(description="The newest head in the transparency log; null until there is one."),
    ]


def entry_view(entry: AuditEntry) -> AuditEntryView:
    """Return the view of one entry."""
    actor = ActorView(type=entry.actor_type, id=entry.actor_id)
    return AuditEntryView.from_record(
        entry, actor=actor, metadata=read_metadata(entry.metadata), chain_hash=_chain_hash(entry)
    )


def verification_view(found: Verification, head: LoggedHead | None) -> AuditVerification:
    """Return the view of a verification."""
    logged = head and LoggedHeadView(entries=head.entries, chain_hash=base64url.encode(head.chain_hash))
    return AuditVerification.from_record(found, verified=found.is_verified, logged_head=logged)


def json_lines(entries: Sequence[AuditEntry]) -> bytes:
    """Return one line of JSON for each entry."""
    return b"".join(entry_view(entry).model_dump_json().encode() + b"\n" for entry in entries)


def csv_head() -> bytes:
    """Return the CSV line with the names of the columns."""
    return _csv([CSV_COLUMNS])


def csv_lines(entries: Sequence[AuditEntry]) -> bytes:
    """Return one line of CSV (RFC 4180) for each entry, every cell quoted and safe from evaluation by a spreadsheet."""
    return _csv([tuple(map(_defuse_formula, _cells(entry))) for entry in entries])


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
        "" if entry.position is None else str(entry.position),
        _chain_hash(entry) or "",
    )


def _chain_hash(entry: AuditEntry) -> str | None:
    return None if entry.chain_hash is None else base64url.encode(entry.chain_hash)


def _defuse_formula(cell: str) -> str:
    """Return the cell, prefixed with an apostrophe if a spreadsheet could take it for a formula."""
    is_formula = cell.startswith(_FORMULA_BEGINS) or cell.lstrip().startswith(_FORMULA_BEGINS)
    return f"'{cell}" if is_formula else cell


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()
