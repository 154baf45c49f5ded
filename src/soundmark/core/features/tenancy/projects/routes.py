"""The routes of projects."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path

from soundmark.core.edge.examples import PROJECT
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant
from soundmark.core.features.tenancy.projects import service
from soundmark.core.features.tenancy.projects.wire import CreateProject, ProjectPage, RenameProject
from soundmark.core.problems import ProjectNameConflict, ProjectNotFound, ResourceDeletionInProgress
from soundmark.core.views.tenancy import ProjectView
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.wire.private.problems import OrganizationSuspended

operations = Operations("Projects")

ProjectIdPath = Annotated[ResourceId, Path(description="The project's id.", examples=["prj_bW9ybmluZy1zaG93LWV4YW"])]


@operations.add(
    "POST",
    "/v1/projects",
    Operation(
        "project.create",
        tenant="body",
        problems=(ProjectNameConflict, ResourceDeletionInProgress, OrganizationSuspended),
    ),
    status=HTTPStatus.CREATED,
    example=ProjectView.from_record(PROJECT),
)
async def create_project(ctx: Ctx, scope: Tenant, body: CreateProject) -> ProjectView:
    """Create a project in an organisation."""
    return ProjectView.from_record(await service.create_project(ctx, scope, name=body.name))


@operations.add(
    "PATCH",
    "/v1/projects/{project_id}",
    Operation("project.update", problems=(ProjectNotFound, ProjectNameConflict)),
    example=ProjectView.from_record(PROJECT),
)
async def rename_project(
    ctx: Ctx,
    scope: Tenant,
    project_id: ProjectIdPath,
    body: RenameProject,
) -> ProjectView:
    """Rename a project."""
    return ProjectView.from_record(await service.rename_project(ctx, scope, project_id, name=body.name))


@operations.add(
    "GET",
    "/v1/projects",
    Operation("project.list", problems=(InvalidCursor,)),
    example=ProjectPage(data=[ProjectView.from_record(PROJECT)], next_cursor=None),
)
async def list_projects(
    ctx: Ctx,
    scope: Tenant,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> ProjectPage:
    """List the projects of an organisation, newest first."""
    cursors = ctx.cursors.bind("projects", organization_id=scope.organization_id)
    page = await service.list_projects(ctx, scope, before=cursors.read(cursor), limit=limit)
    return cursors.show(ProjectPage, page, ProjectView.from_record)
