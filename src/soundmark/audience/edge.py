"""The dependencies of Audience's routes (context, workspace, operation), and the decorator that serves an endpoint."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Path, Query
from starlette.requests import Request

from soundmark.audience.context import Context
from soundmark.audience.domain.integration import Workspace
from soundmark.audience.domain.operation import RequestedOperation
from soundmark.kit.http.requests.private_endpoint import PrivateEndpoint
from soundmark.kit.http.requests.private_headers import OPERATION_HEADER
from soundmark.wire.private.integrations import OperationAction
from soundmark.wire.private.parts import ID_PATTERN, ProjectQuery

F = TypeVar("F", bound=Callable[..., Any])


def serve(router: APIRouter, endpoint: PrivateEndpoint[Any]) -> Callable[[F], F]:
    """Return a decorator that makes a function serve `endpoint` on `router`."""
    return router.api_route(
        endpoint.path,
        methods=[endpoint.method],
        status_code=endpoint.statuses[0],
        response_model=endpoint.response,
    )


# Asynchronous although they never wait, because the framework would run them in a thread, which costs more.
async def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


async def _workspace(query: Annotated[ProjectQuery, Query()]) -> Workspace:
    return Workspace(query.organization_id, query.project_id)


Ctx = Annotated[Context, Depends(_context)]
InWorkspace = Annotated[Workspace, Depends(_workspace)]
OrganizationPath = Annotated[str, Path(pattern=ID_PATTERN)]
# Any text is accepted: one that cannot be an integration's id names no integration.
IntegrationPath = Annotated[str, Path(max_length=1024)]
OperationId = Annotated[str, Header(alias=OPERATION_HEADER, pattern=ID_PATTERN)]


class OperationOn:
    """Dependency: a mutation of one integration, under the operation id that Core gave it."""

    def __init__(self, action: OperationAction) -> None:
        self.action = action

    async def __call__(
        self, workspace: InWorkspace, integration_id: IntegrationPath, operation_id: OperationId
    ) -> RequestedOperation:
        return RequestedOperation(operation_id, self.action, workspace, integration_id)
