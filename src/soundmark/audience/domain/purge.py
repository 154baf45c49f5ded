"""Tenants that leave, and the counts of what is deleted of them."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PurgeSubject:
    """An organisation or, if `project_id` is not None, one of its projects alone."""

    organization_id: str
    project_id: str | None

    def digest(self) -> bytes:
        """Return what stands for the subject after it has left."""
        return hashlib.sha256(f"{self.organization_id}/{self.project_id or ''}".encode()).digest()


def digests_covering(organization_id: str, project_id: str | None) -> list[bytes]:
    """Return the digests of the subjects whose purge concerns this project or, with None, the organisation itself."""
    whole = PurgeSubject(organization_id, None)
    return (
        [whole.digest()] if project_id is None else [whole.digest(), PurgeSubject(organization_id, project_id).digest()]
    )


@dataclass(frozen=True, slots=True)
class PurgeCounts:
    """Numbers of rows of a subject."""

    integrations: int
    events: int
    integrity_days: int
    legacy_days: int
    spent_proofs: int


@dataclass(frozen=True, slots=True)
class Purge:
    """A purge that was begun, with the numbers of rows deleted so far."""

    operation_id: str
    subject_digest: bytes
    is_complete: bool
    integrations: int
    events: int
    integrity_days: int
    legacy_days: int
    spent_proofs: int

    @property
    def deleted(self) -> PurgeCounts:
        """The numbers of rows deleted so far."""
        return PurgeCounts(self.integrations, self.events, self.integrity_days, self.legacy_days, self.spent_proofs)
