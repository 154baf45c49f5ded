"""The routes of Codes."""

from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from soundmark.core.channel.audio import WAV_TYPE, Protocol
from soundmark.core.domain.scope import TenantScope
from soundmark.core.edge import (
    Ctx,
    CursorText,
    Limit,
    RequestId,
    TenantInBody,
    TenantInQuery,
    TenantInQueryOrHeader,
    invalid,
    needs,
    problems,
)
from soundmark.core.features.codes import service
from soundmark.core.features.codes.wire import CodePage, CreateCode, detail_view, issued_view, summary_view
from soundmark.core.problems import (
    AudioUnavailable,
    CampaignNotFound,
    CodeNotActive,
    CodeNotFound,
    IntegrationNotFound,
    IntentNotCanonical,
    ProjectNotFound,
)
from soundmark.kit.http import StrictRoute
from soundmark.kit.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.wire.xr_code import CodeDetail, CodeIssued

router = APIRouter(route_class=StrictRoute, tags=["Codes"])

XrIdPath = Annotated[str, Path(max_length=160, description="The Code's id.", examples=["xr_bm9yZGxpY2h0LWV4YW1wbA"])]
_PROTOCOLS: Final[dict[str, Protocol]] = {"3": 3, "4": 4, "5": 5}
_WAV_ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Mono, 48 kHz, 16-bit PCM.",
        "content": {WAV_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post(
    "/v1/codes",
    status_code=HTTPStatus.CREATED,
    responses=problems(ProjectNotFound, CampaignNotFound, IntegrationNotFound, IntentNotCanonical),
    openapi_extra=needs("code.issue"),
)
async def issue_code(
    ctx: Ctx, scope: Annotated[TenantScope, Depends(TenantInBody("code.issue"))], body: CreateCode
) -> CodeIssued:
    """Issue a signed Code."""
    wanted = service.Issuance(
        project_id=body.project_id,
        campaign_id=body.campaign_id,
        issuer=body.issuer,
        expires_at=body.expires_at,
        intent={"type": body.intent.type, "action": body.intent.action, "resource": body.intent.resource},
        integration_id=body.audience.integration_id if body.audience is not None else None,
    )
    return issued_view(await service.issue_code(ctx, scope, wanted))


@router.get("/v1/codes", responses=problems(InvalidCursor), openapi_extra=needs("code.list"))
async def list_codes(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQueryOrHeader("code.list"))],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> CodePage:
    """List the Codes of an organisation, newest first."""
    bound_to = {"organization_id": scope.organization_id, "project_id": scope.project_id}
    before = ctx.cursors.read(cursor, route="codes", bound_to=bound_to)
    page, now = await service.list_codes(ctx, scope, before=before, limit=limit)
    return CodePage(
        data=[summary_view(code, now) for code in page.entries],
        next_cursor=ctx.cursors.write(page.next_position, route="codes", bound_to=bound_to),
    )


@router.get("/v1/codes/{xr_id}", responses=problems(CodeNotFound, ProjectNotFound), openapi_extra=needs("code.read"))
async def get_code(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("code.read"))],
    xr_id: XrIdPath,
    project_id: Annotated[str | None, Query(max_length=160, description="Answer only a Code of this project.")] = None,
) -> CodeDetail:
    """Read one Code, in whatever state, with everything that was signed."""
    code = await service.get_code(ctx, scope, xr_id, project_id=project_id)
    return detail_view(code, ctx.clock.now())


@router.post("/v1/codes/{xr_id}/revoke", responses=problems(CodeNotFound), openapi_extra=needs("code.revoke"))
async def revoke_code(
    ctx: Ctx, scope: Annotated[TenantScope, Depends(TenantInQueryOrHeader("code.revoke"))], xr_id: XrIdPath
) -> CodeDetail:
    """Revoke one Code: no resolution that starts after the answer returns its intent."""
    code = await service.revoke_code(ctx, scope, xr_id)
    return detail_view(code, ctx.clock.now())


@router.get(
    "/v1/codes/{xr_id}/audio",
    response_class=Response,
    responses=_WAV_ANSWER | problems(CodeNotFound, CodeNotActive, AudioUnavailable),
    openapi_extra=needs("code.render"),
)
async def render_code(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQuery("code.render"))],
    xr_id: XrIdPath,
    request_id: RequestId,
    protocol: Annotated[
        str,
        Query(
            description="3 ultrasound normal, 4 ultrasound fast, 5 ultrasound fastest.",
            json_schema_extra={"enum": ["3", "4", "5"]},
        ),
    ] = "4",
) -> Response:
    """Render an active Code's frame as a WAV."""
    if protocol not in _PROTOCOLS:
        raise invalid("query", "protocol", "must be 3, 4 or 5")
    identity, wav = await service.render_code(ctx, scope, xr_id, protocol=_PROTOCOLS[protocol], request_id=request_id)
    headers = {"content-disposition": f'attachment; filename="{identity}.wav"'}
    return Response(wav, media_type=WAV_TYPE, headers=headers)
