"""The route of entitlements."""

from fastapi import APIRouter

from soundmark.audience.domain.entitlement import Entitlement
from soundmark.audience.edge import Ctx, OrganizationPath, serve
from soundmark.audience.steps.tenancy import hold_unpurged
from soundmark.audience.store import entitlements
from soundmark.kit.http.requests.routes import JsonRoute
from soundmark.wire.private.integrations import PUT_ENTITLEMENT, EntitlementResponse, EntitlementTerms
from soundmark.wire.shape import EntitledMode

router = APIRouter(route_class=JsonRoute)


@serve(router, PUT_ENTITLEMENT)
async def put_entitlement(
    ctx: Ctx, organization_id: OrganizationPath, mode: EntitledMode, body: EntitlementTerms
) -> EntitlementResponse:
    """Keep an organisation's entitlement, unless a later revision is already here; return the one that is kept.

    Repeated, late and reordered requests all lead to the same result.

    Raises: TenantPurged.
    Source: API v1, "States and transitions", entitlements; contract, section 6.
    """
    async with ctx.db.transaction() as tx:
        await hold_unpurged(tx, organization_id, None)
        await entitlements.insert_or_update_newer(tx, Entitlement.from_terms(organization_id, mode, body))
        kept = await entitlements.find(tx, organization_id, mode)
    assert kept is not None, "one was just inserted, or was there already"
    return EntitlementResponse.from_record(kept)
