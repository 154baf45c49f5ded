"""The route of suspensions."""

from fastapi import APIRouter

from soundmark.audience.domain.suspension import Suspension
from soundmark.audience.edge import Ctx, OrganizationPath, serve
from soundmark.audience.steps.tenancy import hold_unpurged
from soundmark.audience.store import suspensions
from soundmark.kit.http.requests.routes import JsonRoute
from soundmark.wire.private.integrations import PUT_SUSPENSION, SuspensionResponse, SuspensionState

router = APIRouter(route_class=JsonRoute)


@serve(router, PUT_SUSPENSION)
async def put_suspension(ctx: Ctx, organization_id: OrganizationPath, body: SuspensionState) -> SuspensionResponse:
    """Keep whether an organisation is suspended, unless a later revision is already here; return what is kept.

    Events of a suspended organisation are refused from the commit on. Repeated, late and reordered requests all lead
    to the same result.

    Raises: TenantPurged.
    Source: contract, section 13.
    """
    async with ctx.db.transaction() as tx:
        await hold_unpurged(tx, organization_id, None)
        suspension = Suspension(organization_id, body.is_suspended, body.revision)
        await suspensions.insert_or_update_newer(tx, suspension)
        kept = await suspensions.find(tx, organization_id)
    assert kept is not None, "one was just inserted, or was there already"
    return SuspensionResponse.from_record(kept)
