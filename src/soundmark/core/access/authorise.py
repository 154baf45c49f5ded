"""Authorisation: the only way for a caller to get into a tenant."""

from soundmark.core.access.policy import POLICY, Action, Rule
from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.scope import Actor, Caller, Role, ServerKey, TenantScope, User
from soundmark.core.problems import (
    Forbidden,
    InsufficientScope,
    MfaRequired,
    OrganizationNotFound,
    PlatformAdminRequired,
    UserTokenRequired,
)


def authorise_user(caller: Caller, action: Action) -> None:
    """Require a person who may carry out an action that belongs to no organisation.

    Raises: UserTokenRequired; PlatformAdminRequired; MfaRequired.
    """
    rule = POLICY[action]
    assert rule.roles is None, f"{action} belongs to an organisation"
    if not isinstance(caller, User):
        raise UserTokenRequired
    if rule.is_platform and not caller.is_platform_admin:
        raise PlatformAdminRequired
    if rule.mfa and not caller.has_mfa:
        raise MfaRequired


def authorise_caller(caller: Caller, action: Action) -> None:
    """Require a caller, a person or an API key, who may carry out an action that belongs to no organisation.

    Raises: as `authorise_user`.
    """
    if not (isinstance(caller, ServerKey) and POLICY[action].any_key):
        authorise_user(caller, action)


async def authorise(ctx: RequestContext, caller: Caller, action: Action, organization_id: str) -> TenantScope:
    """Return the scope in which `caller` may carry out `action`.

    Raises: OrganizationNotFound if the caller does not belong to the organisation, exactly as if it did not exist;
        Forbidden; InsufficientScope; UserTokenRequired; MfaRequired.
    Source: contract, sections 1 and 2.
    """
    rule = POLICY[action]
    assert rule.roles is not None, f"{action} belongs to no organisation"
    if isinstance(caller, ServerKey):
        return _scope_of_key(caller, rule, organization_id)
    role = await ctx.roles.run((organization_id, caller.subject_id))
    if role is None:
        raise OrganizationNotFound
    return _scope_of_user(caller, rule, organization_id, role)


def _scope_of_key(key: ServerKey, rule: Rule, organization_id: str) -> TenantScope:
    if key.organization_id != organization_id:
        raise OrganizationNotFound
    if rule.key_scope is None:
        raise UserTokenRequired
    if rule.key_scope not in key.scopes:
        raise InsufficientScope(f"This API key lacks the scope {rule.key_scope}.")
    return TenantScope(
        organization_id=organization_id,
        project_id=key.project_id,
        actor=Actor("api_key", key.id),
        caller=key,
        role=None,
        allowed_roles=frozenset(),
    )


def _scope_of_user(user: User, rule: Rule, organization_id: str, role: Role) -> TenantScope:
    assert rule.roles is not None, "checked by `authorise`"
    if role not in rule.roles:
        raise Forbidden
    if rule.mfa and not user.has_mfa:
        raise MfaRequired
    return TenantScope(
        organization_id=organization_id,
        project_id=None,
        actor=Actor("user", user.subject_id),
        caller=user,
        role=role,
        allowed_roles=rule.roles,
    )
