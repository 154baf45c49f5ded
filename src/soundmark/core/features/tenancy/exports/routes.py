"""The routes that return archives."""

import base64
from typing import Annotated, Any, Final

from fastapi import Path
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, Tenant
from soundmark.core.features.tenancy.exports import example, service
from soundmark.core.features.tenancy.exports.subject import ArchiveSubject, organization_subject, project_subject
from soundmark.core.problems import (
    AudienceUnavailable,
    OrganizationExportTooLarge,
    ProjectExportTooLarge,
    ProjectNotFound,
    ResourceDeletionInProgress,
)
from soundmark.core.views.archives import OrganizationArchive, ProjectArchive
from soundmark.kit.http.responses.download import Download
from soundmark.wire.shape import Wire

operations = Operations("Exports")

ProjectIdPath = Annotated[ResourceId, Path(description="The project's id.", examples=["prj_bW9ybmluZy1zaG93LWV4YW"])]

_JSON: Final = "application/json"


def _describe_archive(shape: type[Wire]) -> dict[int | str, dict[str, Any]]:
    """Return the successful response for OpenAPI."""
    text = {"schema": {"type": "string"}}
    headers = {
        "Content-Disposition": {"description": "The suggested name of the file.", **text},
        "Content-Digest": {"description": "SHA-256 of the file (RFC 9530).", **text},
    }
    return {200: {"model": shape, "description": "A sealed archive, one record on each line.", "headers": headers}}


@operations.add(
    "GET",
    "/v1/organizations/{organization_id}/export",
    Operation(
        "organization.export",
        tenant="path",
        problems=(OrganizationExportTooLarge, AudienceUnavailable, ResourceDeletionInProgress),
    ),
    responses=_describe_archive(OrganizationArchive),
    response_class=Response,
    example=example.ORGANIZATION_ARCHIVE,
)
async def export_organization(
    request: Request,
    ctx: Ctx,
    scope: Tenant,
) -> Response:
    """Download everything in an organisation as one sealed archive, as of one point in time.

    The archive contains the organisation, its members, projects, campaigns and signed Codes, and its API keys and
    Audience integrations without their secrets. Only one export from an organisation can run at a time (429
    `rate_limited`). An archive that would be too large is refused, never truncated, and so is one of what is partly
    deleted.
    """
    return await _export(request, ctx, scope, organization_subject(scope.organization_id))


@operations.add(
    "GET",
    "/v1/projects/{project_id}/export",
    Operation(
        "project.export",
        problems=(ProjectNotFound, ProjectExportTooLarge, AudienceUnavailable, ResourceDeletionInProgress),
    ),
    responses=_describe_archive(ProjectArchive),
    response_class=Response,
    example=example.PROJECT_ARCHIVE,
)
async def export_project(request: Request, ctx: Ctx, scope: Tenant, project_id: ProjectIdPath) -> Response:
    """Download everything in a project as one sealed archive, as of one point in time.

    The archive contains the project, its campaigns and signed Codes, and its API keys and Audience integrations without
    their secrets. Only one export from an organisation can run at a time (429 `rate_limited`). An archive that would be
    too large is refused, never truncated, and so is one of what is partly deleted.
    """
    return await _export(request, ctx, scope, project_subject(project_id))


async def _export(request: Request, ctx: RequestContext, scope: TenantScope, subject: ArchiveSubject) -> Response:
    async def require_reader() -> None:
        if await request.is_disconnected():
            raise ClientDisconnect

    archive = await service.export_archive(
        ctx, scope, subject, request_id=request.state.request_id, require_reader=require_reader
    )
    content_digest = f"sha-256=:{base64.b64encode(archive.digest).decode()}:"
    return Download(
        archive.content,
        _JSON,
        name=subject.file_name,
        headers={"content-digest": content_digest},
        on_closed=archive.release,
    )
