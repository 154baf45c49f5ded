"""The routes of organisations."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends

from soundmark.core.domain.scope import User
from soundmark.core.edge import Caller, Ctx, CursorText, Limit, needs, problems
from soundmark.core.features.organizations import service
from soundmark.core.features.organizations.wire import (
    CreateOrganization,
    OrganizationPage,
    OrganizationView,
    organization_view,
)
from soundmark.kit.http import StrictRoute
from soundmark.kit.paging import LIMIT_DEFAULT, InvalidCursor

router = APIRouter(route_class=StrictRoute, tags=["Organisations"])


@router.post("/v1/organizations", status_code=HTTPStatus.CREATED, openapi_extra=needs("organization.create"))
async def create_organization(
    ctx: Ctx, user: Annotated[User, Depends(Caller("organization.create"))], body: CreateOrganization
) -> OrganizationView:
    """Create an organisation that the caller owns."""
    return organization_view(await service.create_organization(ctx, user, name=body.name))


@router.get("/v1/organizations", responses=problems(InvalidCursor), openapi_extra=needs("organization.list"))
async def list_organizations(
    ctx: Ctx,
    user: Annotated[User, Depends(Caller("organization.list"))],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> OrganizationPage:
    """List the organisations that the caller belongs to, newest first."""
    bound_to = {"subject_id": user.subject_id}
    before = ctx.cursors.read(cursor, route="organizations", bound_to=bound_to)
    page = await service.list_organizations(ctx, user, before=before, limit=limit)
    return OrganizationPage(
        data=[organization_view(organization) for organization in page.entries],
        next_cursor=ctx.cursors.write(page.next_position, route="organizations", bound_to=bound_to),
    )
