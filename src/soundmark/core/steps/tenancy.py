"""The tenancy gate: the caller's authority, the project and its closure, judged in the transaction that acts."""

from typing import TypeAlias

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.organization import Project
from soundmark.core.domain.tenancy.scope import Role, ServerKey, TenantScope
from soundmark.core.problems import Forbidden, OrganizationNotFound, ProjectNotFound, ResourceDeletionInProgress
from soundmark.core.store.tenancy import api_keys, members, organizations, projects
from soundmark.core.store.tenancy.organizations import Standing
from soundmark.kit.http.responses.problems import Unauthenticated
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.wire.private.problems import OrganizationSuspended

Authority: TypeAlias = Role | bool | None  # A person's role, None for a stranger; whether a key still holds.


async def hold_authority(tx: Tx, scope: TenantScope) -> Role | None:
    """Keep the authority that made `scope` from being withdrawn until the transaction ends.

    Since the caller was authorised, a person may have been demoted or removed, a key revoked or its secret replaced.
    The first step of every command that changes something. Return a person's present role; None for a key. Lock order:
    docs/locks.md.

    Raises: OrganizationNotFound, Forbidden for a person; Unauthenticated for a key.
    """
    return require_authority(scope, await find_authority(tx, scope))


async def find_authority(tx: AnyTx, scope: TenantScope) -> Authority:
    """Return the authority of `scope` as it is now, held until the transaction ends, for `require_authority`."""
    if isinstance(scope.caller, ServerKey):
        return await api_keys.hold(tx, scope.caller)
    return await members.hold_role(tx, scope, scope.caller.subject_id)


def require_authority(scope: TenantScope, authority: Authority) -> Role | None:
    """Return a person's role, None for a key, if the authority still allows what `scope` was made for.

    Raises: as `hold_authority`.
    """
    if isinstance(scope.caller, ServerKey):
        if authority is not True:
            raise Unauthenticated
        return None
    if authority is None:
        raise OrganizationNotFound
    assert not isinstance(authority, bool), "people have roles"
    if authority not in scope.allowed_roles:
        raise Forbidden
    return authority


async def require_project(tx: AnyTx, scope: TenantScope, project_id: str) -> Project:
    """Return a project that the caller may act in.

    Raises: ProjectNotFound, also for a project that the caller's API key does not belong to.
    """
    require_reach(scope, project_id)
    project = await projects.find(tx, scope, project_id)
    if project is None:
        raise ProjectNotFound
    return project


def require_reach(scope: TenantScope, project_id: str) -> None:
    """Make sure that the caller's API key, if it is one, belongs to this project, before the project is looked up.

    Raises: ProjectNotFound.
    """
    if not scope.reaches(project_id):
        raise ProjectNotFound


async def hold_project(tx: Tx, scope: TenantScope, project_id: str) -> None:
    """Keep the caller's authority from being withdrawn and the project from being deleted until the transaction ends.

    Lock order: docs/locks.md.

    Raises: as `hold_authority`; ProjectNotFound.
    """
    require_reach(scope, project_id)
    await hold_authority(tx, scope)
    if not await projects.hold(tx, scope, project_id):
        raise ProjectNotFound


async def hold_open_organization(tx: Tx, scope: TenantScope) -> Role | None:
    """Do the same as `hold_authority`, and keep the organisation open until the transaction ends.

    Raises: as `hold_authority`; ResourceDeletionInProgress.
    """
    role = await hold_authority(tx, scope)
    require_open_organization(is_open=await organizations.hold_open(tx, scope.organization_id))
    return role


def require_open_organization(*, is_open: bool) -> None:
    """Refuse to add to an organisation that is being deleted.

    Raises: ResourceDeletionInProgress.
    """
    if not is_open:
        raise ResourceDeletionInProgress("This organisation is being deleted.")


def require_active_organization(standing: Standing | None) -> None:
    """Refuse to add to an organisation that is being deleted or suspended.

    Raises: ResourceDeletionInProgress; OrganizationSuspended.
    """
    require_open_organization(is_open=standing is not None and standing.is_open)
    require_unsuspended(standing)


async def require_active(ctx: Context, scope: TenantScope) -> None:
    """Do the same as `require_active_organization` for a request that is refused in any case, and changes nothing.

    Raises: as `require_active_organization`; DatabaseUnavailable.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        standing = await organizations.find_standing(tx, scope.organization_id)
    require_active_organization(standing)


def require_unsuspended(standing: Standing | None) -> None:
    """Refuse to add to an organisation that the platform has suspended, after refusing for every deletion.

    Raises: OrganizationSuspended.
    Source: contract, section 13.
    """
    if standing is not None and standing.is_suspended:
        raise OrganizationSuspended


def require_open_project(*, is_open: bool | None) -> None:
    """Refuse to add to a project that is being deleted; `is_open` is None if there is no such project.

    Raises: ProjectNotFound; ResourceDeletionInProgress.
    """
    if is_open is None:
        raise ProjectNotFound
    if not is_open:
        raise ResourceDeletionInProgress("This project is being deleted.")


async def hold_open_project(tx: Tx, scope: TenantScope, project_id: str) -> None:
    """Do the same as `hold_project`, and keep the organisation and the project open until the transaction ends.

    Raises: as `hold_project`; ResourceDeletionInProgress.
    """
    require_reach(scope, project_id)
    await hold_open_organization(tx, scope)
    require_open_project(is_open=await projects.hold_open(tx, scope, project_id))


async def hold_active_organization(tx: Tx, scope: TenantScope) -> Role | None:
    """Do the same as `hold_open_organization`, and keep the organisation from being suspended.

    Raises: as `hold_open_organization`; OrganizationSuspended.
    """
    role = await hold_authority(tx, scope)
    require_active_organization(await organizations.hold_standing(tx, scope.organization_id))
    return role


async def hold_active_project(tx: Tx, scope: TenantScope, project_id: str) -> None:
    """Do the same as `hold_open_project`, and keep the organisation from being suspended.

    Raises: as `hold_open_project`; OrganizationSuspended.
    """
    require_reach(scope, project_id)
    await hold_authority(tx, scope)
    standing = await organizations.hold_standing(tx, scope.organization_id)
    require_open_organization(is_open=standing is not None and standing.is_open)
    require_open_project(is_open=await projects.hold_open(tx, scope, project_id))
    require_unsuspended(standing)
