"""The public views of contracts for measuring, and of the organisations that the accounting system knows."""

from soundmark.core.domain.billing.catalog import ContractStatus
from soundmark.wire.shape import Timestamp, Wire


class AccountingCustomerView(Wire):
    """An organisation, and the third party in the accounting system that its invoices go to."""

    organization_id: str
    organization_name: str
    thirdparty_id: int
    updated_at: Timestamp


class AudienceContractView(Wire):
    """An organisation's contract for measuring. It entitles while it is active and its period has not ended."""

    organization_id: str
    plan_id: str
    contract_reference: str
    status: ContractStatus
    period_end: Timestamp | None
    updated_at: Timestamp
