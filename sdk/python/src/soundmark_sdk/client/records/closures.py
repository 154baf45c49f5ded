"""Deletions of projects and organisations."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from soundmark_sdk.client.records.record import Record


@dataclass(frozen=True, slots=True)
class ClosureBlocker(Record):
    """A reason why a deletion would be refused: the code of the problem, and the ids of what stands in the way."""

    code: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosurePreflight(Record):
    """The result that a deletion would have now, and the id that its certificate would have.

    `deletes` has the number of each kind of record; None if Audience cannot be asked.
    """

    can_delete: bool
    blockers: tuple[ClosureBlocker, ...]
    deletes: Mapping[str, int | None]
    certificate_id: str
    deletion_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeletedSubject(Record):
    """The project or organisation that was deleted."""

    type: Literal["organization", "project"]
    id: str
    organization_id: str


@dataclass(frozen=True, slots=True)
class DeletionCertificate(Record):
    """The service's statement about a deletion. Pass its `document` to `soundmark_sdk.verify_certificate`.

    `deleted` and `remaining` hold, for each component, the number of each kind of record.
    """

    certificate_id: str
    subject: DeletedSubject
    requested_at: datetime
    completed_at: datetime
    deleted: Mapping[str, Mapping[str, int]]
    remaining: Mapping[str, Mapping[str, int]]
    key_id: str
    signature: str
