"""Commands on projects."""

from soundmark.core.context import Context
from soundmark.core.domain.organization import Project
from soundmark.core.domain.scope import TenantScope
from soundmark.core.store import projects
from soundmark.kit.ids import mint
from soundmark.kit.paging import Page, Position, cut_page


async def create_project(ctx: Context, scope: TenantScope, *, name: str) -> Project:
    """A new project of the organisation exists.

    Raises: ProjectNameConflict.
    Source: API v1, "Organisations and projects".
    """
    project_id = mint(ctx.entropy, "prj_")
    async with ctx.db.transaction() as tx:
        now = ctx.clock.now()
        await projects.insert(tx, scope, project_id=project_id, name=name, now=now)
    return Project(
        id=project_id, organization_id=scope.organization_id, name=name, created_at=now, deletion_requested_at=None
    )


async def list_projects(ctx: Context, scope: TenantScope, *, before: Position | None, limit: int) -> Page[Project]:
    """The projects of the organisation, newest first."""
    async with ctx.db.transaction() as tx:
        rows = await projects.list_newest_first(tx, scope, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))
