"""The routes that act on a selection of Codes."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from soundmark.core.domain.scope import TenantScope
from soundmark.core.edge import Ctx, RequestId, TenantInQuery, needs, problems
from soundmark.core.features.codes import bundle, service
from soundmark.core.features.codes.wire import BundleCodes, RevokeCodes, RevokedCodes
from soundmark.core.problems import (
    AudioBundleTooLarge,
    AudioUnavailable,
    CodeNotActive,
    CodeNotFound,
    ProjectNotFound,
)
from soundmark.kit.download import Download
from soundmark.kit.http import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["Codes"])

_ZIP_TYPE: Final = "application/zip"
_ZIP_ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "A ZIP file without compression: `<xr_id>.wav` for each Code, in the order asked.",
        "content": {_ZIP_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post(
    "/v1/codes/revoke-batch",
    responses=problems(ProjectNotFound, CodeNotFound),
    openapi_extra=needs("code.revoke_batch"),
)
async def revoke_codes(
    ctx: Ctx, scope: Annotated[TenantScope, Depends(TenantInQuery("code.revoke_batch"))], body: RevokeCodes
) -> RevokedCodes:
    """Revoke a selection of Codes of one project, or none of them. What is revoked or expired stays as it is."""
    revoked = await service.revoke_codes(ctx, scope, body.project_id, body.xr_ids)
    return RevokedCodes(
        requested_count=revoked.requested_count,
        revoked_count=revoked.revoked_count,
        unchanged_count=revoked.requested_count - revoked.revoked_count,
    )


@router.post(
    "/v1/codes/audio-bundle",
    response_class=Response,
    responses=_ZIP_ANSWER
    | problems(ProjectNotFound, CodeNotFound, CodeNotActive, AudioBundleTooLarge, AudioUnavailable),
    openapi_extra=needs("code.render"),
)
async def bundle_codes(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("code.render"))],
    project_id: Annotated[str, Query(max_length=160, description="The project of the Codes.")],
    body: BundleCodes,
    request_id: RequestId,
) -> Response:
    """Render the frames of active Codes as WAVs in one ZIP file. All of them, or a problem."""
    content = await bundle.bundle_codes(
        ctx, scope, project_id, body.xr_ids, protocol=body.protocol, request_id=request_id
    )
    return Download(content, _ZIP_TYPE, name=f"codes-{project_id}.zip", headers={})
