"""The routes of organisations."""

from http import HTTPStatus

from soundmark.core.edge.examples import ORGANIZATION
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx, CursorText, Limit, Tenant
from soundmark.core.features.tenancy.organizations import service
from soundmark.core.features.tenancy.organizations.wire import CreateOrganization, OrganizationPage, RenameOrganization
from soundmark.core.problems import OrganizationLimitReached
from soundmark.core.views.tenancy import OrganizationView
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor

operations = Operations("Organizations")


@operations.add(
    "POST",
    "/v1/organizations",
    Operation("organization.create", tenant="none", problems=(OrganizationLimitReached,)),
    status=HTTPStatus.CREATED,
    example=OrganizationView.from_record(ORGANIZATION),
)
async def create_organization(ctx: Ctx, user: CallingUser, body: CreateOrganization) -> OrganizationView:
    """Create an organisation. The caller becomes its owner."""
    return OrganizationView.from_record(await service.create_organization(ctx, user, name=body.name))


@operations.add(
    "PATCH",
    "/v1/organizations/{organization_id}",
    Operation("organization.update", tenant="path"),
    example=OrganizationView.from_record(ORGANIZATION),
)
async def rename_organization(
    ctx: Ctx,
    scope: Tenant,
    body: RenameOrganization,
) -> OrganizationView:
    """Rename an organisation."""
    return OrganizationView.from_record(await service.rename_organization(ctx, scope, name=body.name))


@operations.add(
    "GET",
    "/v1/organizations",
    Operation("organization.list", tenant="none", problems=(InvalidCursor,)),
    example=OrganizationPage(data=[OrganizationView.from_record(ORGANIZATION)], next_cursor=None),
)
async def list_organizations(
    ctx: Ctx,
    user: CallingUser,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> OrganizationPage:
    """List the organisations that the caller belongs to, newest first."""
    cursors = ctx.cursors.bind("organizations", subject_id=user.subject_id)
    page = await service.list_organizations(ctx, user, before=cursors.read(cursor), limit=limit)
    return cursors.show(OrganizationPage, page, OrganizationView.from_record)
