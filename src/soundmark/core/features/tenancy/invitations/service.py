"""Commands on invitations."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.invitation import Invitation, InvitedRole
from soundmark.core.domain.tenancy.mailbox import Mailbox, read_mailbox
from soundmark.core.domain.tenancy.scope import Actor, TenantScope, User
from soundmark.core.problems import (
    AlreadyAMember,
    Forbidden,
    InvitationInvalid,
    InvitationNotFound,
    InvitationNotPending,
    MfaRequired,
)
from soundmark.core.providers.smtp_settings import has_smtp_server
from soundmark.core.steps import audit
from soundmark.core.steps.mail_quota import take_mail
from soundmark.core.steps.tenancy import hold_active_organization, hold_authority, require_active_organization
from soundmark.core.store.tenancy import invitations, members, organizations
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint, mint_secret
from soundmark.kit.text.paging import Page, Position, cut_page

DELIVER: Final = "deliver_invitation"  # The job that delivers an invitation: `jobs`.

_PREFIX: Final = "xin_"
_TOKEN: Final = re.compile(r"xin_[A-Za-z0-9_-]{43}", re.ASCII)  # Contract, section 1.


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A new invitation and its secret, which is never shown again."""

    invitation: Invitation
    secret: Secret


@dataclass(frozen=True, slots=True)
class NewMembership:
    """The membership that accepting an invitation created."""

    organization_id: str
    role: InvitedRole


async def create_invitation(
    ctx: Context, scope: TenantScope, *, mailbox: Mailbox, role: InvitedRole, lifetime: timedelta
) -> NewInvitation:
    """Invite a person, by mail if a mail server is configured and the day's limit allows it.

    The secret is stored as a digest, and sealed until the mail is sent.

    Raises: Forbidden if somebody other than an owner invites an administrator; ResourceDeletionInProgress.
    Source: API v1, "Members, invitations, audit".
    """
    # Before the transaction, because it reads the database itself.
    has_server = await has_smtp_server(ctx.platform_settings)
    invitation_id, secret = mint(ctx.entropy, "inv_"), mint_secret(ctx.entropy, _PREFIX)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        own_role = await hold_active_organization(tx, scope)
        if role == "admin" and own_role != "owner":
            raise Forbidden("Only an owner can invite an administrator.")
        now = ctx.clock.now()
        organization_id = scope.organization_id
        has_mail = has_server and await take_mail(
            tx, ctx.sealer, organization_id=organization_id, mailbox=mailbox, now=now
        )
        invitation = Invitation(
            id=invitation_id,
            organization_id=organization_id,
            email=mailbox.address,
            role=role,
            created_at=now,
            expires_at=now + lifetime,
            accepted_at=None,
            revoked_at=None,
            delivery_status="pending" if has_mail else "unavailable",
        )
        sealed = _seal_secret(ctx.sealer, secret, invitation_id) if has_mail else None
        await invitations.insert(tx, scope, invitation, digest=_digest(secret), sealed_secret=sealed)
        await audit.record(
            tx, scope, ctx.entropy, "invitation.created", now=now, invitation_id=invitation_id, role=role
        )
        if has_mail:
            await ctx.queue.defer(
                tx, DELIVER, lock=invitation_id, organization_id=organization_id, invitation_id=invitation_id
            )
    return NewInvitation(invitation, Secret(secret))


async def list_invitations(
    ctx: Context, scope: TenantScope, *, before: Position | None, limit: int
) -> Page[Invitation]:
    """Return the invitations of the organisation, newest first."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        rows = await invitations.list_newest_first(tx, scope, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))


async def revoke_invitation(ctx: Context, scope: TenantScope, invitation_id: str) -> Invitation:
    """Revoke the invitation: nobody can accept it from then on, and a mail that is still queued is not sent.

    Raises: InvitationNotFound; InvitationNotPending.
    Source: API v1, "Members, invitations, audit".
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        found = await invitations.lock(tx, organization_id=scope.organization_id, invitation_id=invitation_id)
        if found is None:
            raise InvitationNotFound
        now = ctx.clock.now()
        if found.status(now) != "pending":
            raise InvitationNotPending
        revoked = await invitations.update_revoked(tx, scope, invitation_id, now=now)
        await audit.record(
            tx, scope, ctx.entropy, "invitation.revoked", now=now, invitation_id=invitation_id, role=revoked.role
        )
    return revoked


async def accept_invitation(ctx: Context, user: User, *, token: str) -> NewMembership:
    """Make the person a member with the invitation's role, once.

    1. Find the invitation's organisation in the narrow table of digests.
    2. Judge and do everything else there, in one transaction, under the lock of the invitation's row.

    Raises: InvitationInvalid, for every reason that would tell a stranger something; MfaRequired, for the right person
        only; ResourceDeletionInProgress and OrganizationSuspended, for the right person only; AlreadyAMember, which
        changes nothing.
    Source: API v1, "Members, invitations, audit"; contract, section 2.
    """
    if _TOKEN.fullmatch(token) is None:
        raise InvitationInvalid
    async with ctx.db.transaction() as tx:
        where = await invitations.find_by_digest(tx, _digest(token))
    if where is None:
        raise InvitationInvalid
    async with ctx.db.transaction(tenant=where.organization_id) as tx:
        standing = await organizations.hold_standing(tx, where.organization_id)
        invitation = await invitations.lock(
            tx, organization_id=where.organization_id, invitation_id=where.invitation_id
        )
        now = ctx.clock.now()
        if invitation is None or invitation.status(now) != "pending" or not _is_for(invitation, user):
            raise InvitationInvalid
        require_active_organization(standing)
        if invitation.role == "admin" and not user.has_mfa:
            raise MfaRequired
        await _join(ctx, tx, user, invitation, now=now)
    return NewMembership(invitation.organization_id, invitation.role)


async def _join(ctx: Context, tx: Tx, user: User, invitation: Invitation, *, now: datetime) -> None:
    is_new = await members.insert_if_new(
        tx,
        organization_id=invitation.organization_id,
        subject_id=user.subject_id,
        email=user.email,
        role=invitation.role,
        now=now,
    )
    if not is_new:
        raise AlreadyAMember
    await invitations.update_accepted(tx, invitation, now=now)
    await audit.record_as(
        tx,
        Actor("user", user.subject_id),
        ctx.entropy,
        "invitation.accepted",
        organization_id=invitation.organization_id,
        now=now,
        invitation_id=invitation.id,
        role=invitation.role,
    )


def _is_for(invitation: Invitation, user: User) -> bool:
    invited, asking = read_mailbox(invitation.email), read_mailbox(user.email)
    return invited is not None and asking is not None and invited.is_same(asking)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _seal_secret(sealer: Sealer, secret: str, invitation_id: str) -> bytes:
    return sealer.seal(secret.encode(), table="invitations", column="sealed_secret", row=invitation_id)


def unseal_secret(sealer: Sealer, sealed: bytes, invitation_id: str) -> Secret:
    """Return the secret of an invitation that is being delivered.

    Raises: kit.crypto.sealing.SealBroken.
    """
    return Secret(sealer.unseal(sealed, table="invitations", column="sealed_secret", row=invitation_id).decode())
