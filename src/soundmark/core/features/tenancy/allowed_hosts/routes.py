"""The routes of allowed hosts."""

from typing import Annotated, Final

from fastapi import Path

from soundmark.core.domain.tenancy.allowed_hosts import AllowedHosts
from soundmark.core.edge.examples import LATER, PROJECT
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, Tenant
from soundmark.core.features.tenancy.allowed_hosts import service
from soundmark.core.features.tenancy.allowed_hosts.wire import AllowedHostsView, PutAllowedHosts
from soundmark.core.problems import ProjectNotFound

operations = Operations("Projects")

_EXAMPLE: Final = AllowedHosts(["example.org", "*.example.org"], LATER)

ProjectIdPath = Annotated[ResourceId, Path(description="The project's id.", examples=["prj_bW9ybmluZy1zaG93LWV4YW"])]


def _view(project_id: str, allowed: AllowedHosts) -> AllowedHostsView:
    hosts = None if allowed.hosts is None else list(allowed.hosts)
    return AllowedHostsView(project_id=project_id, hosts=hosts, updated_at=allowed.updated_at)


@operations.add(
    "GET",
    "/v1/projects/{project_id}/allowed-hosts",
    Operation("project.read_hosts", problems=(ProjectNotFound,)),
    example=_view(PROJECT.id, _EXAMPLE),
)
async def get_allowed_hosts(ctx: Ctx, scope: Tenant, project_id: ProjectIdPath) -> AllowedHostsView:
    """Return the hosts to which the intents of a project may lead."""
    return _view(project_id, await service.read_allowed_hosts(ctx, scope, project_id))


@operations.add(
    "PUT",
    "/v1/projects/{project_id}/allowed-hosts",
    Operation("project.change_hosts", problems=(ProjectNotFound,)),
    example=_view(PROJECT.id, _EXAMPLE),
)
async def put_allowed_hosts(
    ctx: Ctx, scope: Tenant, project_id: ProjectIdPath, body: PutAllowedHosts
) -> AllowedHostsView:
    """Set the hosts to which the intents of a project may lead, so that a stolen key cannot lead listeners elsewhere.

    While they are set, every intent whose `resource.url` is a string must lead to one of them by `https`, and an intent
    of type `link` must have such an address. Codes that were issued before are not affected.
    """
    return _view(project_id, await service.put_allowed_hosts(ctx, scope, project_id, body.hosts))
