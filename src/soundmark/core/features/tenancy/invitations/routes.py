"""The routes of invitations."""

from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import Path

from soundmark.core.domain.tenancy.mailbox import read_mailbox
from soundmark.core.edge.examples import ISSUED_AT, LATER
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx, CursorText, Limit, Tenant
from soundmark.core.features.tenancy.invitations import example, service
from soundmark.core.features.tenancy.invitations.wire import (
    AcceptInvitation,
    CreatedInvitationView,
    CreateInvitation,
    InvitationPage,
    InvitationView,
    JoinedView,
    created_view,
    invitation_view,
)
from soundmark.core.problems import (
    AlreadyAMember,
    InvitationInvalid,
    InvitationNotFound,
    InvitationNotPending,
    MfaRequired,
    ResourceDeletionInProgress,
)
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.wire.private.problems import OrganizationSuspended

operations = Operations("Invitations")

InvitationIdPath = Annotated[
    ResourceId, Path(description="The invitation's id.", examples=["inv_YWRhLWxvdmVsYWNlLWV4YW"])
]


@operations.add(
    "POST",
    "/v1/member-invitations",
    Operation("invitation.create", tenant="body", problems=(ResourceDeletionInProgress, OrganizationSuspended)),
    status=HTTPStatus.CREATED,
    example=created_view(example.CREATED),
)
async def create_invitation(ctx: Ctx, scope: Tenant, body: CreateInvitation) -> CreatedInvitationView:
    """Invite a person. The secret is returned only in this response. Only an owner can invite an administrator."""
    mailbox = read_mailbox(body.email)
    assert mailbox is not None, "the model has validated it"
    lifetime = timedelta(days=body.expires_in_days)
    return created_view(await service.create_invitation(ctx, scope, mailbox=mailbox, role=body.role, lifetime=lifetime))


@operations.add(
    "GET",
    "/v1/member-invitations",
    Operation("invitation.list", problems=(InvalidCursor,)),
    example=InvitationPage(data=[invitation_view(example.INVITATION, ISSUED_AT)], next_cursor=None),
)
async def list_invitations(
    ctx: Ctx,
    scope: Tenant,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> InvitationPage:
    """List the invitations of an organisation, newest first, regardless of status."""
    cursors = ctx.cursors.bind("invitations", organization_id=scope.organization_id)
    page = await service.list_invitations(ctx, scope, before=cursors.read(cursor), limit=limit)
    now = ctx.clock.now()
    return cursors.show(InvitationPage, page, lambda invitation: invitation_view(invitation, now))


@operations.add(
    "POST",
    "/v1/member-invitations/{invitation_id}/revoke",
    Operation("invitation.revoke", problems=(InvitationNotFound, InvitationNotPending)),
    example=invitation_view(example.REVOKED, LATER),
)
async def revoke_invitation(
    ctx: Ctx,
    scope: Tenant,
    invitation_id: InvitationIdPath,
) -> InvitationView:
    """Revoke a pending invitation."""
    return invitation_view(await service.revoke_invitation(ctx, scope, invitation_id), ctx.clock.now())


@operations.add(
    "POST",
    "/v1/member-invitations/accept",
    Operation(
        "invitation.accept",
        tenant="none",
        problems=(InvitationInvalid, MfaRequired, AlreadyAMember, ResourceDeletionInProgress, OrganizationSuspended),
    ),
    example=JoinedView.from_record(example.JOINED),
)
async def accept_invitation(ctx: Ctx, user: CallingUser, body: AcceptInvitation) -> JoinedView:
    """Accept an invitation to your verified e-mail address. Joining as an administrator requires MFA."""
    return JoinedView.from_record(await service.accept_invitation(ctx, user, token=body.token))
