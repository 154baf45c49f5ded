"""Commands on organisations."""

from soundmark.core.access.operator import is_operator
from soundmark.core.context import Context, RequestContext
from soundmark.core.domain.codes.quota import STARTER_PLAN_ID
from soundmark.core.domain.tenancy.organization import Organization
from soundmark.core.domain.tenancy.scope import Actor, TenantScope, User
from soundmark.core.steps import audit
from soundmark.core.steps.ownership import require_room
from soundmark.core.steps.tenancy import hold_authority
from soundmark.core.store.codes import code_entitlements
from soundmark.core.store.tenancy import members, organizations
from soundmark.kit.text.ids import mint
from soundmark.kit.text.paging import Page, Position, cut_page


async def create_organization(ctx: RequestContext, user: User, *, name: str) -> Organization:
    """Create an organisation that the caller owns.

    Raises: OrganizationLimitReached.
    Source: API v1, "Organisations and projects"; contract, section 2.
    """
    organization_id = mint(ctx.entropy, "org_")
    async with ctx.db.transaction(tenant=organization_id, subject=user.subject_id) as tx:
        if not is_operator(user):
            await require_room(ctx, tx, user.subject_id)
        now = ctx.clock.now()
        await organizations.insert(tx, organization_id=organization_id, name=name, now=now)
        await members.insert(
            tx, organization_id=organization_id, subject_id=user.subject_id, email=user.email, role="owner", now=now
        )
        await code_entitlements.insert(tx, organization_id=organization_id, plan_id=STARTER_PLAN_ID)
        actor = Actor("user", user.subject_id)
        await audit.record_as(tx, actor, ctx.entropy, "organization.created", organization_id=organization_id, now=now)
    return Organization(organization_id, name, "owner", created_at=now, deletion_requested_at=None, suspended_at=None)


async def rename_organization(ctx: Context, scope: TenantScope, *, name: str) -> Organization:
    """Rename the organisation; its id and everything in it stay.

    Source: API v1, "Organisations and projects".
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        role = await hold_authority(tx, scope)
        assert role is not None, "the policy lets no key do this"
        now = ctx.clock.now()
        renamed = await organizations.update_name(tx, scope, name=name, role=role)
        await audit.record(tx, scope, ctx.entropy, "organization.updated", now=now, name=name)
    return renamed


async def list_organizations(ctx: Context, user: User, *, before: Position | None, limit: int) -> Page[Organization]:
    """Return the organisations that the caller belongs to, newest first."""
    rows = await organizations.list_of_subject(ctx.db, subject_id=user.subject_id, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))
