"""The one function that opens a tenant to a caller."""

from soundmark.core.access.policy import POLICY, Action
from soundmark.core.context import Context
from soundmark.core.domain.scope import TenantScope, User
from soundmark.core.problems import Forbidden, MfaRequired, OrganizationNotFound
from soundmark.core.store import organizations
from soundmark.kit.ids import may_be_id


def authorise_user(user: User, action: Action) -> User:
    """The user, for an act that happens in no organisation.

    Raises: MfaRequired.
    """
    rule = POLICY[action]
    assert rule.roles is None, f"{action} happens inside an organisation"
    if rule.mfa and not user.has_mfa:
        raise MfaRequired
    return user


async def authorise(ctx: Context, user: User, action: Action, organization_id: str) -> TenantScope:
    """The scope in which `user` may do `action`.

    Raises: OrganizationNotFound for a stranger, exactly as for an organisation that does not exist; Forbidden;
        MfaRequired.
    Source: contract, sections 1 and 2.
    """
    rule = POLICY[action]
    assert rule.roles is not None, f"{action} happens in no organisation"
    if not may_be_id(organization_id):
        raise OrganizationNotFound
    async with ctx.db.transaction() as tx:
        role = await organizations.find_role(tx, organization_id=organization_id, subject_id=user.subject_id)
    if role is None:
        raise OrganizationNotFound
    if role not in rule.roles:
        raise Forbidden
    if rule.mfa and not user.has_mfa:
        raise MfaRequired
    return TenantScope(organization_id=organization_id, user=user, role=role)
