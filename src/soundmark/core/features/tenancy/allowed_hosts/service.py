"""The command on allowed hosts."""

from collections.abc import Sequence

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.allowed_hosts import AllowedHosts
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import ProjectNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.tenancy import hold_authority, require_reach
from soundmark.core.store.tenancy import projects


async def read_allowed_hosts(ctx: Context, scope: TenantScope, project_id: str) -> AllowedHosts:
    """Return the hosts to which intents of a project may lead.

    Raises: ProjectNotFound.
    Source: contract, section 13.
    """
    require_reach(scope, project_id)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        found = await projects.find_allowed_hosts(tx, scope, project_id)
    if found is None:
        raise ProjectNotFound
    return found


async def put_allowed_hosts(
    ctx: Context, scope: TenantScope, project_id: str, hosts: Sequence[str] | None
) -> AllowedHosts:
    """Set the hosts to which intents of a project may lead: from the answer on, none is issued that leads elsewhere.

    The project's row is locked, which every issuance holds: one that was first is committed before. The same hosts in
    the same order change nothing.

    Raises: ProjectNotFound.
    Source: contract, section 13.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        found = await projects.lock_allowed_hosts(tx, scope, project_id)
        if found is None:
            raise ProjectNotFound
        if found.hosts == hosts:
            return found
        now = ctx.clock.now()
        await projects.update_allowed_hosts(tx, scope, project_id, hosts=hosts, now=now)
        await audit.record(
            tx, scope, ctx.entropy, "project.allowed_hosts_changed", now=now, project_id=project_id, hosts=hosts
        )
    return AllowedHosts(hosts, now)
