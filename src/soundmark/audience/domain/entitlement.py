"""How many events an organisation may have recorded in a month, and until when."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.audience.domain.integration import EntitledMode


@dataclass(frozen=True, slots=True)
class Entitlement:
    """Core's entitlement as it was told last. `ends_at` None has no end; a smaller `revision` is an older one."""

    organization_id: str
    mode: EntitledMode
    monthly_event_quota: int
    ends_at: datetime | None
    revision: int

    def holds(self, now: datetime) -> bool:
        """Whether it is not over."""
        return self.ends_at is None or now < self.ends_at
