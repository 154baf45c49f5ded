"""The routes of members."""

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path

from soundmark.core.domain.scope import TenantScope
from soundmark.core.edge import Ctx, CursorText, Limit, TenantInQuery, needs, problems
from soundmark.core.features.members import service
from soundmark.core.features.members.wire import ChangeMember, MemberPage, MemberView, member_view
from soundmark.core.problems import LastOwner, MemberNotFound, OrganizationLimitReached
from soundmark.kit.http import StrictRoute
from soundmark.kit.paging import LIMIT_DEFAULT, InvalidCursor

router = APIRouter(route_class=StrictRoute, tags=["Members"])

# An identity provider may put any character into a subject, a slash too.
_SUBJECT_PATH: Final = "/v1/members/{subject_id:path}"
SubjectPath = Annotated[
    str,
    Path(max_length=255, description="The person's `sub` at the identity provider.", examples=["6f1c3f0e-5d0b"]),
]


@router.get("/v1/members", responses=problems(InvalidCursor), openapi_extra=needs("member.list"))
async def list_members(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("member.list"))],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> MemberPage:
    """List the members of an organisation, newest first."""
    bound_to = {"organization_id": scope.organization_id}
    before = ctx.cursors.read(cursor, route="members", bound_to=bound_to)
    page = await service.list_members(ctx, scope, before=before, limit=limit)
    return MemberPage(
        data=[member_view(member) for member in page.entries],
        next_cursor=ctx.cursors.write(page.next_position, route="members", bound_to=bound_to),
    )


@router.put(
    _SUBJECT_PATH,
    responses=problems(MemberNotFound, LastOwner, OrganizationLimitReached),
    openapi_extra=needs("member.update"),
)
async def change_member(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("member.update"))],
    subject_id: SubjectPath,
    body: ChangeMember,
) -> MemberView:
    """Give a member a role. Only an owner makes, changes or unmakes owners and administrators.

    A role that the member has already changes nothing, and the audit log does not tell of it.
    """
    return member_view(await service.change_role(ctx, scope, subject_id, role=body.role))


@router.delete(
    _SUBJECT_PATH,
    status_code=HTTPStatus.NO_CONTENT,
    responses=problems(MemberNotFound, LastOwner),
    openapi_extra=needs("member.remove"),
)
async def remove_member(
    ctx: Ctx, scope: Annotated[TenantScope, Depends(TenantInQuery("member.remove"))], subject_id: SubjectPath
) -> None:
    """Remove a member. Everybody may leave; others are removed by owners and administrators, and those by owners."""
    await service.remove_member(ctx, scope, subject_id)
