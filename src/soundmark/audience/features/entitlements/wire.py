"""What is asked and answered about entitlements."""

from soundmark.audience.domain.entitlement import Entitlement
from soundmark.audience.domain.integration import EntitledMode
from soundmark.audience.wire import Count
from soundmark.wire.shape import Timestamp, Wire


class PutEntitlement(Wire):
    """An entitlement as Core has it now. `ends_at` null has no end; of two the later `revision` stays."""

    monthly_event_quota: Count
    ends_at: Timestamp | None
    revision: Count


class EntitlementView(Wire):
    """The entitlement that holds here."""

    organization_id: str
    mode: EntitledMode
    monthly_event_quota: int
    ends_at: Timestamp | None
    revision: int


def entitlement_view(entitlement: Entitlement) -> EntitlementView:
    """What is answered of one entitlement."""
    return EntitlementView(
        organization_id=entitlement.organization_id,
        mode=entitlement.mode,
        monthly_event_quota=entitlement.monthly_event_quota,
        ends_at=entitlement.ends_at,
        revision=entitlement.revision,
    )
