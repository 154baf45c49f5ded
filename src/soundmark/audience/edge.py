"""How a request of Core's becomes a context, a workspace and an operation."""

from typing import Annotated

from fastapi import Depends, Header, Path, Query
from starlette.requests import Request

from soundmark.audience.context import Context
from soundmark.audience.domain.integration import Workspace
from soundmark.audience.wire import ID_PATTERN
from soundmark.kit.problems import FieldError, ValidationFailed


# Asynchronous though they wait for nothing: the framework runs others in a thread, which costs more than they do.
async def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


OrganizationQuery = Annotated[str, Query(pattern=ID_PATTERN)]
ProjectQuery = Annotated[str, Query(pattern=ID_PATTERN)]


async def _workspace(organization_id: OrganizationQuery, project_id: ProjectQuery) -> Workspace:
    return Workspace(organization_id, project_id)


async def _workspace_if_named(
    organization_id: Annotated[str | None, Query(pattern=ID_PATTERN)] = None,
    project_id: Annotated[str | None, Query(pattern=ID_PATTERN)] = None,
) -> Workspace | None:
    if organization_id is None and project_id is None:
        return None
    if organization_id is None or project_id is None:
        missing = "organization_id" if organization_id is None else "project_id"
        raise ValidationFailed(errors=(FieldError("query", f"/{missing}", "must be there, as the other one is"),))
    return Workspace(organization_id, project_id)


Ctx = Annotated[Context, Depends(_context)]
InWorkspace = Annotated[Workspace, Depends(_workspace)]
InWorkspaceIfNamed = Annotated[Workspace | None, Depends(_workspace_if_named)]
OrganizationPath = Annotated[str, Path(pattern=ID_PATTERN)]
# Of any shape: what cannot be an integration's id is that of none.
IntegrationPath = Annotated[str, Path(max_length=1024)]
OperationId = Annotated[str, Header(alias="X-Svc-Operation-Id", pattern=ID_PATTERN)]
