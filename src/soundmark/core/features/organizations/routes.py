"""The routes of organisations."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends

from soundmark.core.domain.scope import TenantScope, User
from soundmark.core.edge import CallerOf, Ctx, CursorText, Limit, TenantInPath, needs, problems
from soundmark.core.features.organizations import service
from soundmark.core.features.organizations.wire import (
    CreateOrganization,
    OrganizationPage,
    OrganizationView,
    RenameOrganization,
    organization_view,
)
from soundmark.core.problems import OrganizationLimitReached
from soundmark.kit.http import StrictRoute
from soundmark.kit.paging import LIMIT_DEFAULT, InvalidCursor

router = APIRouter(route_class=StrictRoute, tags=["Organizations"])


@router.post(
    "/v1/organizations",
    status_code=HTTPStatus.CREATED,
    responses=problems(OrganizationLimitReached),
    openapi_extra=needs("organization.create"),
)
async def create_organization(
    ctx: Ctx, user: Annotated[User, Depends(CallerOf("organization.create"))], body: CreateOrganization
) -> OrganizationView:
    """Create an organisation that the caller owns."""
    return organization_view(await service.create_organization(ctx, user, name=body.name))


@router.patch("/v1/organizations/{organization_id}", openapi_extra=needs("organization.update"))
async def rename_organization(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInPath("organization.update"))],
    body: RenameOrganization,
) -> OrganizationView:
    """Give an organisation another name."""
    return organization_view(await service.rename_organization(ctx, scope, name=body.name))


@router.get("/v1/organizations", responses=problems(InvalidCursor), openapi_extra=needs("organization.list"))
async def list_organizations(
    ctx: Ctx,
    user: Annotated[User, Depends(CallerOf("organization.list"))],
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
