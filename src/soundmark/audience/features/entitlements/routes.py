"""The route of entitlements."""

from fastapi import APIRouter

from soundmark.audience.domain.entitlement import Entitlement
from soundmark.audience.domain.integration import EntitledMode
from soundmark.audience.edge import Ctx, OrganizationPath
from soundmark.audience.features.entitlements import service
from soundmark.audience.features.entitlements.wire import EntitlementView, PutEntitlement, entitlement_view
from soundmark.kit.http import JsonRoute

router = APIRouter(route_class=JsonRoute)


@router.put("/v1/entitlements/{organization_id}/{mode}")
async def put_entitlement(
    ctx: Ctx, organization_id: OrganizationPath, mode: EntitledMode, body: PutEntitlement
) -> EntitlementView:
    """Take over an entitlement of Core's."""
    told = Entitlement(
        organization_id=organization_id,
        mode=mode,
        monthly_event_quota=body.monthly_event_quota,
        ends_at=body.ends_at,
        revision=body.revision,
    )
    return entitlement_view(await service.put_entitlement(ctx, told))
