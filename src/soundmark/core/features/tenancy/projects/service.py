"""Commands on projects."""

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.organization import Project
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import ProjectNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.tenancy import hold_active_organization, hold_authority
from soundmark.core.store.tenancy import projects
from soundmark.kit.text.ids import mint
from soundmark.kit.text.paging import Page, Position, cut_page


async def create_project(ctx: Context, scope: TenantScope, *, name: str) -> Project:
    """Create a project in the organisation.

    Raises: ProjectNameConflict; ResourceDeletionInProgress.
    Source: API v1, "Organisations and projects".
    """
    project_id = mint(ctx.entropy, "prj_")
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_active_organization(tx, scope)
        now = ctx.clock.now()
        await projects.insert(tx, scope, project_id=project_id, name=name, now=now)
        await audit.record(tx, scope, ctx.entropy, "project.created", now=now, project_id=project_id)
    return Project(
        id=project_id, organization_id=scope.organization_id, name=name, created_at=now, deletion_requested_at=None
    )


async def rename_project(ctx: Context, scope: TenantScope, project_id: str, *, name: str) -> Project:
    """Rename the project; its id and everything in it stay.

    Raises: ProjectNotFound; ProjectNameConflict.
    Source: API v1, "Organisations and projects".
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        await projects.lock_names(tx, scope)
        now = ctx.clock.now()
        renamed = await projects.update_name(tx, scope, project_id, name=name)
        if renamed is None:
            raise ProjectNotFound
        await audit.record(tx, scope, ctx.entropy, "project.updated", now=now, project_id=project_id, name=name)
    return renamed


async def list_projects(ctx: Context, scope: TenantScope, *, before: Position | None, limit: int) -> Page[Project]:
    """Return the projects of the organisation, newest first."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        rows = await projects.list_newest_first(tx, scope, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))
