"""The routes of closures and deletion certificates."""

from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Path
from starlette.responses import Response

from soundmark.core.domain.tenancy.closure import ClosureSubject
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, RequestId, ResourceId, Tenant
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
        "description": "Nothing is left.",
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
    """Tell what the deletion of the organisation would delete, and what is in its way. Nothing is changed."""
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
    """Tell what the deletion of the project would delete, and what is in its way. Nothing is changed."""
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
    """Delete the organisation with everything in it, for good. It may take minutes.

    If it fails or is interrupted, the organisation stays marked, and a repetition continues. Nothing can be added
    meanwhile. The certificate of the deletion needs no credential.
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
    """Delete the project with everything in it, for good. It may take minutes.

    If it fails or is interrupted, the project stays marked, and a repetition continues. Nothing can be added meanwhile.
    The certificate of the deletion needs no credential.
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
    """Return the signed certificate that nothing of an organisation or a project is left. It is kept for ever."""
    async with ctx.db.transaction() as tx:
        document = await deletion_certificates.find(tx, certificate_id)
    if document is None:
        raise DeletionCertificateNotFound
    return Response(document, media_type="application/json")


def _certificate_path(certificate_id: str) -> str:
    return f"/v1/deletion-certificates/{certificate_id}"
