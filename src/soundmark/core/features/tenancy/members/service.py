"""Commands on members."""

from dataclasses import replace

from soundmark.core.access.operator import is_operator
from soundmark.core.context import Context, RequestContext
from soundmark.core.domain.tenancy.member import OWNERS_BUSINESS, Member
from soundmark.core.domain.tenancy.scope import Role, TenantScope
from soundmark.core.problems import Forbidden, LastOwner, MemberNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.ownership import require_room
from soundmark.core.steps.tenancy import hold_authority
from soundmark.core.store.tenancy import members
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Page, Position, cut_page


async def list_members(ctx: Context, scope: TenantScope, *, before: Position | None, limit: int) -> Page[Member]:
    """Return the members of the organisation, newest first."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        rows = await members.list_newest_first(tx, scope, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.subject_id))


async def change_role(ctx: RequestContext, scope: TenantScope, subject_id: str, *, role: Role) -> Member:
    """Give the member this role. A member who has it already is returned unchanged, without an audit entry.

    Raises: Forbidden if the change makes or unmakes an owner or administrator and the caller is not an owner;
        MemberNotFound; LastOwner; OrganizationLimitReached if the member already owns as many as one person may.
    Source: API v1, "Members, invitations, audit"; contract, section 2.
    """
    # A future owner's other organisations count too, and only a transaction of that person sees them.
    subject = subject_id if role == "owner" and _may_be_subject(subject_id) else None
    async with ctx.db.transaction(tenant=scope.organization_id, subject=subject) as tx:
        await members.lock_roles(tx, scope)
        is_owner = await hold_authority(tx, scope) == "owner"
        if role in OWNERS_BUSINESS and not is_owner:
            raise Forbidden
        member = await _lock(tx, scope, subject_id)
        if member.role in OWNERS_BUSINESS and not is_owner:
            raise Forbidden
        if member.role == role:
            return member
        await _keep_an_owner(tx, scope, member)
        if role == "owner" and not is_operator(scope.user):
            await require_room(ctx, tx, subject_id)
        now = ctx.clock.now()
        await members.update_role(tx, scope, subject_id, role=role)
        await audit.record(
            tx,
            scope,
            ctx.entropy,
            "member.role_changed",
            now=now,
            subject_id=subject_id,
            previous_role=member.role,
            role=role,
        )
    return replace(member, role=role)


async def remove_member(ctx: Context, scope: TenantScope, subject_id: str) -> None:
    """Remove a member, who may do nothing in the organisation from the commit on.

    Raises: Forbidden if the caller removes somebody else without being an owner or administrator, or removes an owner
        or administrator without being an owner; MemberNotFound; LastOwner.
    Source: API v1, "Members, invitations, audit"; contract, section 2.
    """
    is_oneself = subject_id == scope.user.subject_id
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await members.lock_roles(tx, scope)
        # The policy lets every member leave. Who may remove somebody else is judged here, by the present role.
        caller_role = await hold_authority(tx, scope)
        if not is_oneself and caller_role not in OWNERS_BUSINESS:
            raise Forbidden
        member = await _lock(tx, scope, subject_id)
        if not is_oneself and member.role in OWNERS_BUSINESS and caller_role != "owner":
            raise Forbidden
        await _keep_an_owner(tx, scope, member)
        now = ctx.clock.now()
        await members.delete(tx, scope, subject_id)
        await audit.record(tx, scope, ctx.entropy, "member.removed", now=now, subject_id=subject_id, role=member.role)


async def _lock(tx: Tx, scope: TenantScope, subject_id: str) -> Member:
    member = await members.lock(tx, scope, subject_id) if _may_be_subject(subject_id) else None
    if member is None:
        raise MemberNotFound
    return member


def _may_be_subject(subject_id: str) -> bool:
    # PostgreSQL stores no NUL, so no subject id contains one.
    return "\0" not in subject_id


async def _keep_an_owner(tx: Tx, scope: TenantScope, leaving: Member) -> None:
    if leaving.role == "owner" and not await members.hold_owner_beside(tx, scope, leaving.subject_id):
        raise LastOwner
