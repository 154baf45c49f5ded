"""The example of a contract."""

from datetime import UTC, datetime
from typing import Final

from soundmark.core.domain.billing.catalog import CONTRACT_PLAN_ID, AudienceContract
from soundmark.core.edge.examples import ISSUED_AT, ORGANIZATION

CONTRACT: Final = AudienceContract(
    organization_id=ORGANIZATION.id,
    plan_id=CONTRACT_PLAN_ID,
    contract_reference="2027-014",
    status="active",
    period_end=datetime(2028, 1, 1, tzinfo=UTC),
    updated_at=ISSUED_AT,
)
