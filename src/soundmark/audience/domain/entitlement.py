"""How many events an organisation may have recorded in a month, and until when."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.wire.private.integrations import EntitlementTerms
from soundmark.wire.shape import EntitledMode


@dataclass(frozen=True, slots=True)
class Entitlement:
    """An entitlement as Core last sent it. `ends_at` None means no end; a smaller `revision` is an older one."""

    organization_id: str
    mode: EntitledMode
    monthly_event_quota: int
    ends_at: datetime | None
    revision: int

    @classmethod
    def from_terms(cls, organization_id: str, mode: EntitledMode, terms: EntitlementTerms) -> "Entitlement":
        """Return the entitlement that has these terms."""
        return cls(organization_id, mode, terms.monthly_event_quota, terms.ends_at, terms.revision)

    def holds(self, now: datetime) -> bool:
        """Return whether it has not ended."""
        return self.ends_at is None or now < self.ends_at
