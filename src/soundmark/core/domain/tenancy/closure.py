"""Closures: the irreversible deletion of an organisation or a project."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

# What a request or a job has to do next: purge in Audience, judge the gates again, or delete.
Phase: TypeAlias = Literal["requested", "purged", "deleting"]
SubjectType: TypeAlias = Literal["organization", "project"]

CERTIFICATE_PREFIX: Final = "dct_"


@dataclass(frozen=True, slots=True)
class ClosureSubject:
    """An organisation or, if `project_id` is not None, one of its projects alone."""

    organization_id: str
    project_id: str | None

    @property
    def id(self) -> str:
        """The id of the project or, without one, of the organisation."""
        return self.project_id or self.organization_id

    @property
    def type(self) -> SubjectType:
        """The kind of the subject."""
        return "organization" if self.project_id is None else "project"


@dataclass(frozen=True, slots=True)
class PurgedCounts:
    """The numbers of rows of a subject that Audience had, or has."""

    integrations: int
    events: int
    integrity_days: int
    legacy_days: int
    spent_proofs: int


NOTHING_PURGED: Final = PurgedCounts(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Closure:
    """A closure that is under way, with the numbers of rows deleted so far.

    `operation_id` is the id of the audit entry that requested it, and of the purge in Audience.
    """

    organization_id: str
    project_id: str | None
    certificate_id: str
    operation_id: str
    phase: Phase
    requested_at: datetime
    deleted_codes: int
    deleted_audit_entries: int
    deleted_certificates: int
    purged_integrations: int
    purged_events: int
    purged_integrity_days: int
    purged_legacy_days: int
    purged_spent_proofs: int

    @property
    def subject(self) -> ClosureSubject:
        """What is being deleted."""
        return ClosureSubject(self.organization_id, self.project_id)

    @property
    def purged(self) -> PurgedCounts:
        """The numbers of rows that Audience deleted."""
        return PurgedCounts(
            integrations=self.purged_integrations,
            events=self.purged_events,
            integrity_days=self.purged_integrity_days,
            legacy_days=self.purged_legacy_days,
            spent_proofs=self.purged_spent_proofs,
        )


@dataclass(frozen=True, slots=True)
class Blocker:
    """A reason why a deletion would be refused now: the code of its problem, and the ids of what is in the way."""

    code: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClosurePreview:
    """What a deletion would do. `counts` is by kind; the number of integrations is None if Audience does not answer."""

    blockers: tuple[Blocker, ...]
    counts: Mapping[str, int | None]
    certificate_id: str
    deletion_requested_at: datetime | None
