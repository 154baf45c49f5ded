"""The routes of projects."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path

from soundmark.core.domain.scope import TenantScope
from soundmark.core.edge import Ctx, CursorText, Limit, TenantInBody, TenantInQuery, needs, problems
from soundmark.core.features.projects import service
from soundmark.core.features.projects.wire import CreateProject, ProjectPage, ProjectView, RenameProject, project_view
from soundmark.core.problems import ProjectNameConflict, ProjectNotFound
from soundmark.kit.http import StrictRoute
from soundmark.kit.paging import LIMIT_DEFAULT, InvalidCursor

router = APIRouter(route_class=StrictRoute, tags=["Projects"])

ProjectIdPath = Annotated[
    str, Path(max_length=160, description="The project's id.", examples=["prj_bW9ybmluZy1zaG93LWV4YW"])
]


@router.post(
    "/v1/projects",
    status_code=HTTPStatus.CREATED,
    responses=problems(ProjectNameConflict),
    openapi_extra=needs("project.create"),
)
async def create_project(
    ctx: Ctx, scope: Annotated[TenantScope, Depends(TenantInBody("project.create"))], body: CreateProject
) -> ProjectView:
    """Create a project in an organisation."""
    return project_view(await service.create_project(ctx, scope, name=body.name))


@router.patch(
    "/v1/projects/{project_id}",
    responses=problems(ProjectNotFound, ProjectNameConflict),
    openapi_extra=needs("project.update"),
)
async def rename_project(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("project.update"))],
    project_id: ProjectIdPath,
    body: RenameProject,
) -> ProjectView:
    """Give a project another name."""
    return project_view(await service.rename_project(ctx, scope, project_id, name=body.name))


@router.get("/v1/projects", responses=problems(InvalidCursor), openapi_extra=needs("project.list"))
async def list_projects(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("project.list"))],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> ProjectPage:
    """List the projects of an organisation, newest first."""
    bound_to = {"organization_id": scope.organization_id}
    before = ctx.cursors.read(cursor, route="projects", bound_to=bound_to)
    page = await service.list_projects(ctx, scope, before=before, limit=limit)
    return ProjectPage(
        data=[project_view(project) for project in page.entries],
        next_cursor=ctx.cursors.write(page.next_position, route="projects", bound_to=bound_to),
    )
