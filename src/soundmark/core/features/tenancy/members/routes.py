"""The routes of members."""

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Path
from pydantic import ConfigDict

from soundmark.core.domain.tenancy.scope import Role
from soundmark.core.edge.examples import MEMBER
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant
from soundmark.core.features.tenancy.members import service
from soundmark.core.problems import LastOwner, MemberNotFound, OrganizationLimitReached
from soundmark.core.views.tenancy import MemberView
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.wire.shape import Wire


class ChangeMember(Wire):
    """A new role for a member."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "admin"}]})

    role: Role


class MemberPage(Wire):
    """Members, newest first; those created at the same time in descending order of subject id."""

    data: list[MemberView]
    next_cursor: str | None


operations = Operations("Members")

# An identity provider may put any character into a subject, even a slash.
_SUBJECT_PATH: Final = "/v1/members/{subject_id:path}"
SubjectPath = Annotated[
    str,
    Path(max_length=255, description="The person's `sub` at the identity provider.", examples=["6f1c3f0e-5d0b"]),
]


@operations.add(
    "GET",
    "/v1/members",
    Operation("member.list", problems=(InvalidCursor,)),
    example=MemberPage(data=[MemberView.from_record(MEMBER)], next_cursor=None),
)
async def list_members(
    ctx: Ctx,
    scope: Tenant,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> MemberPage:
    """List the members of an organisation, newest first."""
    cursors = ctx.cursors.bind("members", organization_id=scope.organization_id)
    page = await service.list_members(ctx, scope, before=cursors.read(cursor), limit=limit)
    return cursors.show(MemberPage, page, MemberView.from_record)


@operations.add(
    "PUT",
    _SUBJECT_PATH,
    Operation("member.update", problems=(MemberNotFound, LastOwner, OrganizationLimitReached)),
    example=MemberView.from_record(MEMBER),
)
async def change_member(
    ctx: Ctx,
    scope: Tenant,
    subject_id: SubjectPath,
    body: ChangeMember,
) -> MemberView:
    """Change a member's role. Only an owner may grant, change or withdraw the roles owner and admin.

    Assigning the role that the member already has changes nothing and writes no audit entry.
    """
    return MemberView.from_record(await service.change_role(ctx, scope, subject_id, role=body.role))


@operations.add(
    "DELETE",
    _SUBJECT_PATH,
    Operation("member.remove", problems=(MemberNotFound, LastOwner)),
    status=HTTPStatus.NO_CONTENT,
)
async def remove_member(ctx: Ctx, scope: Tenant, subject_id: SubjectPath) -> None:
    """Remove a member. Members may remove themselves. Only an owner may remove another owner or administrator."""
    await service.remove_member(ctx, scope, subject_id)
