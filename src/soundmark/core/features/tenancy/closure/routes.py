"""The routes of closures and deletion certificates."""

from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Path
from starlette.responses import Response

from soundmark.core.domain.tenancy.closure import ClosureSubject
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, RequestId, Tenant
from soundmark.core.features.tenancy.closure import example, preflight, service
from soundmark.core.features.tenancy.closure.wire import (
    DeleteOrganization,
    DeleteProject,
    OrganizationPreflight,
    ProjectPreflight,
    organization_preflight,
    project_preflight,
)
from soundmark.core.problems import (
    AudienceUnavailable,
    ConfirmationMismatch,
    DeletionBillingActive,
    DeletionCertificateNotFound,
    DeletionOperationsPending,
    ProjectNotFound,
    ResourceDeletionInProgress,
)
from soundmark.core.store.platform import deletion_certificates
from soundmark.wire.deletion_certificate import DeletionCertificate

operations = Operations("Leaving")

ProjectIdPath = Annotated[ResourceId, Path(description="The project's id.", examples=["prj_bW9ybmluZy1zaG93LWV4YW"])]
CertificateIdPath = Annotated[
    ResourceId, Path(description="The certificate's id, from the preflight.", examples=["dct_dGhhdC13YXMtaXQtZXhhbX"])
]
_DELETED: Final[dict[int | str, dict[str, Any]]] = {
    204: {
        "description": "The deletion is complete.",
        "headers": {
            "Location": {"description": "The path of the deletion certificate.", "schema": {"type": "string"}},
        },
    }
}


@operations.add(
    "GET",
    "/v1/organizations/{organization_id}/closure-preflight",
    Operation("organization.preflight", tenant="path"),
    example=organization_preflight(example.ORGANIZATION_PREVIEW),
)
async def preview_organization_deletion(ctx: Ctx, scope: Tenant, request_id: RequestId) -> OrganizationPreflight:
    """Preview the deletion of the organisation: what it would delete, and what blocks it. Changes nothing."""
    subject = ClosureSubject(scope.organization_id, None)
    return organization_preflight(await preflight.preview_closure(ctx, scope, subject, request_id=request_id))


@operations.add(
    "GET",
    "/v1/projects/{project_id}/closure-preflight",
    Operation("project.preflight", problems=(ProjectNotFound,)),
    example=project_preflight(example.PROJECT_PREVIEW),
)
async def preview_project_deletion(
    ctx: Ctx, scope: Tenant, project_id: ProjectIdPath, request_id: RequestId
) -> ProjectPreflight:
    """Preview the deletion of the project: what it would delete, and what blocks it. Changes nothing."""
    subject = ClosureSubject(scope.organization_id, project_id)
    return project_preflight(await preflight.preview_closure(ctx, scope, subject, request_id=request_id))


@operations.add(
    "DELETE",
    "/v1/organizations/{organization_id}",
    Operation(
        "organization.delete",
        tenant="path",
        problems=(ConfirmationMismatch, DeletionBillingActive, DeletionOperationsPending, AudienceUnavailable),
    ),
    status=HTTPStatus.NO_CONTENT,
    responses=_DELETED,
)
async def delete_organization(
    ctx: Ctx, scope: Tenant, body: DeleteOrganization, request_id: RequestId, response: Response
) -> None:
    """Permanently delete the organisation and everything in it. This can take minutes.

    If the request fails or is interrupted, the organisation stays marked for deletion, and repeating the request
    continues it. In the meantime, nothing can be added. The deletion certificate needs no credential.
    """
    subject = ClosureSubject(scope.organization_id, None)
    response.headers["location"] = _certificate_path(
        await service.delete(ctx, scope, subject, confirmation=body.confirmation, request_id=request_id)
    )


@operations.add(
    "DELETE",
    "/v1/projects/{project_id}",
    Operation(
        "project.delete",
        problems=(
            ProjectNotFound,
            ConfirmationMismatch,
            ResourceDeletionInProgress,
            DeletionOperationsPending,
            AudienceUnavailable,
        ),
    ),
    status=HTTPStatus.NO_CONTENT,
    responses=_DELETED,
)
async def delete_project(
    ctx: Ctx, scope: Tenant, project_id: ProjectIdPath, body: DeleteProject, request_id: RequestId, response: Response
) -> None:
    """Permanently delete the project and everything in it. This can take minutes.

    If the request fails or is interrupted, the project stays marked for deletion, and repeating the request continues
    it. In the meantime, nothing can be added. The deletion certificate needs no credential.
    """
    subject = ClosureSubject(scope.organization_id, project_id)
    response.headers["location"] = _certificate_path(
        await service.delete(ctx, scope, subject, confirmation=body.confirmation, request_id=request_id)
    )


@operations.add(
    "GET",
    "/v1/deletion-certificates/{certificate_id}",
    Operation(None, problems=(DeletionCertificateNotFound,), note="the id is the key"),
    response_model=DeletionCertificate,
    example=example.CERTIFICATE,
)
async def get_deletion_certificate(ctx: Ctx, certificate_id: CertificateIdPath) -> Response:
    """Return the signed certificate of the complete deletion of an organisation or a project. It is kept for ever."""
    async with ctx.db.transaction() as tx:
        document = await deletion_certificates.find(tx, certificate_id)
    if document is None:
        raise DeletionCertificateNotFound
    return Response(document, media_type="application/json")


def _certificate_path(certificate_id: str) -> str:
    return f"/v1/deletion-certificates/{certificate_id}"
