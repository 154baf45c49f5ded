"""The routes of every organisation, for administrators of the platform."""

from typing import Annotated

from fastapi import Query

from soundmark.core.domain.tenancy.organization import OrganizationStatus
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx, CursorText, Limit, OrganizationPath
from soundmark.core.features.platform.organizations import example, service
from soundmark.core.features.platform.organizations.service import SuspendedOrganization
from soundmark.core.features.platform.organizations.wire import (
    PlatformOrganizationPage,
    PlatformOrganizationView,
    PutSuspension,
    SuspendedOrganizationView,
)
from soundmark.core.problems import OrganizationNotFound
from soundmark.kit.text.ids import parse_id
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor

operations = Operations("Platform")


def suspended_view(suspended: SuspendedOrganization) -> SuspendedOrganizationView:
    """Return the view of an organisation that was just suspended."""
    return SuspendedOrganizationView.from_record(suspended.organization, packs_valid_until=suspended.packs_valid_until)


@operations.add(
    "GET",
    "/v1/platform/organizations",
    Operation("platform.read", tenant="none", problems=(InvalidCursor,)),
    example=PlatformOrganizationPage(data=[PlatformOrganizationView.from_record(example.SUSPENDED)], next_cursor=None),
)
async def list_platform_organizations(
    ctx: Ctx,
    search: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=120,
            pattern=r"^[^\x00]*$",
            description="A whole id, or the beginning of a name. ASCII letters are compared case-insensitively.",
            examples=["Radio N"],
        ),
    ] = None,
    status: Annotated[
        OrganizationStatus | None,
        Query(description="`active` is neither `closing` nor `suspended`; an organisation can be both of those."),
    ] = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> PlatformOrganizationPage:
    """List every organisation, newest first."""
    cursors = ctx.cursors.bind("platform_organizations", search=search, status=status)
    page = await service.list_organizations(ctx, search=search, status=status, before=cursors.read(cursor), limit=limit)
    return cursors.show(PlatformOrganizationPage, page, PlatformOrganizationView.from_record)


@operations.add(
    "PUT",
    "/v1/platform/organizations/{organization_id}/suspension",
    Operation("platform.change", tenant="none", problems=(OrganizationNotFound,)),
    example=suspended_view(SuspendedOrganization(example.SUSPENDED, None)),
)
async def suspend_organization(
    ctx: Ctx, user: CallingUser, organization_id: OrganizationPath, body: PutSuspension
) -> SuspendedOrganizationView:
    """Suspend an organisation, or replace the reason.

    After the response, its tokens resolve like unknown ones, and nothing can be added to it. Its events are refused
    within a minute. Reading, revoking, exporting and leaving continue to work.
    """
    suspended = await service.suspend_organization(
        ctx, parse_id(organization_id), reason=body.reason, subject_id=user.subject_id
    )
    return suspended_view(suspended)


@operations.add(
    "DELETE",
    "/v1/platform/organizations/{organization_id}/suspension",
    Operation("platform.change", tenant="none", problems=(OrganizationNotFound,)),
    example=PlatformOrganizationView.from_record(example.RESTORED),
)
async def restore_organization(
    ctx: Ctx, user: CallingUser, organization_id: OrganizationPath
) -> PlatformOrganizationView:
    """End the suspension of an organisation. One that is not suspended is returned unchanged."""
    return PlatformOrganizationView.from_record(
        await service.restore_organization(ctx, parse_id(organization_id), subject_id=user.subject_id)
    )
