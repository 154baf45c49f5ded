"""The routes of invitations."""

from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path

from soundmark.core.domain.mailbox import read_mailbox
from soundmark.core.domain.scope import TenantScope, User
from soundmark.core.edge import CallerOf, Ctx, CursorText, Limit, TenantInBody, TenantInQuery, needs, problems
from soundmark.core.features.invitations import service
from soundmark.core.features.invitations.wire import (
    AcceptInvitation,
    CreatedInvitationView,
    CreateInvitation,
    InvitationPage,
    InvitationView,
    JoinedView,
    created_view,
    invitation_view,
    joined_view,
)
from soundmark.core.problems import (
    AlreadyAMember,
    InvitationInvalid,
    InvitationNotFound,
    InvitationNotPending,
    MfaRequired,
)
from soundmark.kit.http import StrictRoute
from soundmark.kit.paging import LIMIT_DEFAULT, InvalidCursor

router = APIRouter(route_class=StrictRoute, tags=["Invitations"])

InvitationIdPath = Annotated[
    str, Path(max_length=160, description="The invitation's id.", examples=["inv_YWRhLWxvdmVsYWNlLWV4YW"])
]


@router.post("/v1/member-invitations", status_code=HTTPStatus.CREATED, openapi_extra=needs("invitation.create"))
async def create_invitation(
    ctx: Ctx, scope: Annotated[TenantScope, Depends(TenantInBody("invitation.create"))], body: CreateInvitation
) -> CreatedInvitationView:
    """Invite a person; the secret is shown this once. Only an owner invites an administrator."""
    mailbox = read_mailbox(body.email)
    assert mailbox is not None, "the model let it through"
    lifetime = timedelta(days=body.expires_in_days)
    return created_view(await service.create_invitation(ctx, scope, mailbox=mailbox, role=body.role, lifetime=lifetime))


@router.get("/v1/member-invitations", responses=problems(InvalidCursor), openapi_extra=needs("invitation.list"))
async def list_invitations(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("invitation.list"))],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> InvitationPage:
    """List the invitations of an organisation, newest first, whatever became of them."""
    bound_to = {"organization_id": scope.organization_id}
    before = ctx.cursors.read(cursor, route="invitations", bound_to=bound_to)
    page = await service.list_invitations(ctx, scope, before=before, limit=limit)
    now = ctx.clock.now()
    return InvitationPage(
        data=[invitation_view(invitation, now) for invitation in page.entries],
        next_cursor=ctx.cursors.write(page.next_position, route="invitations", bound_to=bound_to),
    )


@router.post(
    "/v1/member-invitations/{invitation_id}/revoke",
    responses=problems(InvitationNotFound, InvitationNotPending),
    openapi_extra=needs("invitation.revoke"),
)
async def revoke_invitation(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("invitation.revoke"))],
    invitation_id: InvitationIdPath,
) -> InvitationView:
    """Revoke a pending invitation."""
    return invitation_view(await service.revoke_invitation(ctx, scope, invitation_id), ctx.clock.now())


@router.post(
    "/v1/member-invitations/accept",
    responses=problems(InvitationInvalid, MfaRequired, AlreadyAMember),
    openapi_extra=needs("invitation.accept"),
)
async def accept_invitation(
    ctx: Ctx, user: Annotated[User, Depends(CallerOf("invitation.accept"))], body: AcceptInvitation
) -> JoinedView:
    """Join an organisation by an invitation for your verified e-mail address. As an administrator, with MFA."""
    return joined_view(await service.accept_invitation(ctx, user, token=body.token))
