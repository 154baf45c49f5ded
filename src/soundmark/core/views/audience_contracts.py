"""The public view of contracts for measuring."""

from soundmark.core.domain.billing.catalog import AudienceContract, ContractStatus
from soundmark.wire.shape import Timestamp, Wire


class AudienceContractView(Wire):
    """An organisation's contract for measuring. It entitles while it is active and its period has not ended."""

    organization_id: str
    plan_id: str
    contract_reference: str
    status: ContractStatus
    period_end: Timestamp | None
    updated_at: Timestamp


def audience_contract_view(contract: AudienceContract) -> AudienceContractView:
    """Return the view of a contract."""
    return AudienceContractView(
        organization_id=contract.organization_id,
        plan_id=contract.plan_id,
        contract_reference=contract.contract_reference,
        status=contract.status,
        period_end=contract.period_end,
        updated_at=contract.updated_at,
    )
