"""The public view of contracts for measuring."""

from soundmark.core.domain.billing.catalog import ContractStatus
from soundmark.wire.shape import Timestamp, Wire


class AudienceContractView(Wire):
    """An organisation's contract for measuring. It entitles while it is active and its period has not ended."""

    organization_id: str
    plan_id: str
    contract_reference: str
    status: ContractStatus
    period_end: Timestamp | None
    updated_at: Timestamp
