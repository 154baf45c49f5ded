"""The route of contracts."""

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx, OrganizationPath
from soundmark.core.features.billing.contracts import example, service
from soundmark.core.features.billing.contracts.service import ContractRequest
from soundmark.core.features.billing.contracts.wire import PutAudienceContract
from soundmark.core.problems import (
    ContractReferenceConflict,
    OrganizationNotFound,
    PlanNotFound,
    ResourceDeletionInProgress,
)
from soundmark.core.views.billing import AudienceContractView
from soundmark.kit.http.responses.problems import NotFound
from soundmark.kit.text.ids import parse_id
from soundmark.wire.private.problems import OrganizationSuspended

operations = Operations("Billing catalogue")


@operations.add(
    "PUT",
    "/v1/billing/admin/audience-contracts/{organization_id}",
    Operation(
        "billing.administer",
        tenant="none",
        problems=(
            OrganizationNotFound,
            PlanNotFound,
            NotFound,
            ContractReferenceConflict,
            ResourceDeletionInProgress,
            OrganizationSuspended,
        ),
    ),
    example=AudienceContractView.from_record(example.CONTRACT),
)
async def put_audience_contract(
    ctx: Ctx, user: CallingUser, organization_id: OrganizationPath, body: PutAudienceContract
) -> AudienceContractView:
    """Create, change or cancel an organisation's contract for measuring.

    An organisation has at most one active contract. Activating another reference cancels the previous contract, and the
    organisation's integrations move to the new one within a minute.
    """
    request = ContractRequest(body.plan_id, body.contract_reference, body.status, body.period_end)
    return AudienceContractView.from_record(
        await service.put_audience_contract(ctx, user, parse_id(organization_id), request)
    )
