"""The routes of Codes."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from soundmark.core.channel.audio import WAV_TYPE, Protocol
from soundmark.core.domain.code import CodeStatus
from soundmark.core.domain.scope import TenantScope
from soundmark.core.edge import (
    Ctx,
    CursorText,
    Limit,
    RequestId,
    TenantInQuery,
    TenantInQueryOrHeader,
    invalid,
    needs,
    problems,
)
from soundmark.core.features.codes import service
from soundmark.core.features.codes.wire import CodePage, detail_view, summary_view
from soundmark.core.problems import AudioUnavailable, CampaignNotFound, CodeNotActive, CodeNotFound, ProjectNotFound
from soundmark.core.store.code_lists import Wanted
from soundmark.kit.http import StrictRoute
from soundmark.kit.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.kit.timestamps import format_timestamp
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp
from soundmark.wire.xr_code import CodeDetail

router = APIRouter(route_class=StrictRoute, tags=["Codes"])

XrIdPath = Annotated[str, Path(max_length=160, description="The Code's id.", examples=["xr_bm9yZGxpY2h0LWV4YW1wbA"])]
_PROTOCOLS: Final[dict[str, Protocol]] = {"3": 3, "4": 4, "5": 5}
_WAV_ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Mono, 48 kHz, 16-bit PCM.",
        "content": {WAV_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def _wanted(  # noqa: PLR0913 - one for each filter
    *,
    status: Annotated[
        CodeStatus | None,
        Query(
            description="Only Codes that are in this state when their page is read: one that expires or is revoked "
            "between two pages is where it was issued, in the state that it is in then."
        ),
    ] = None,
    project_id: Annotated[str | None, Query(max_length=160, description="Only Codes of this project.")] = None,
    campaign_id: Annotated[str | None, Query(max_length=160, description="Only Codes of this campaign.")] = None,
    issuer: Annotated[
        str | None,
        Query(min_length=1, max_length=160, pattern=NO_CONTROL_CHARS, description="Only Codes of exactly this issuer."),
    ] = None,
    created_from: Annotated[
        Timestamp | None, Query(description="Only Codes issued at this moment or later, RFC 3339; before `created_to`.")
    ] = None,
    created_to: Annotated[Timestamp | None, Query(description="Only Codes issued before this, RFC 3339.")] = None,
) -> Wanted:
    """Dependency: the filters."""
    if created_from is not None and created_to is not None and created_from >= created_to:
        raise invalid("query", "created_from", "must precede created_to")
    return Wanted(
        status=status,
        campaign_id=campaign_id,
        project_id=project_id,
        issuer=issuer,
        from_at=created_from,
        to_at=created_to,
    )


@router.get(
    "/v1/codes",
    responses=problems(InvalidCursor, ProjectNotFound, CampaignNotFound),
    openapi_extra=needs("code.list"),
)
async def list_codes(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInQueryOrHeader("code.list"))],
    wanted: Annotated[Wanted, Depends(_wanted)],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> CodePage:
    """List the Codes of an organisation, newest first."""
    bound_to = _bound_to(scope, wanted)
    before = ctx.cursors.read(cursor, route="codes", bound_to=bound_to)
    page, now = await service.list_codes(ctx, scope, wanted, before=before, limit=limit)
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


def _bound_to(scope: TenantScope, wanted: Wanted) -> dict[str, str | None]:
    """What a cursor is good for. No moment is in it: each page is judged when it is read."""
    return {
        "organization_id": scope.organization_id,
        "confined_to": scope.project_id,
        "status": wanted.status,
        "campaign_id": wanted.campaign_id,
        "project_id": wanted.project_id,
        "issuer": wanted.issuer,
        "created_from": None if wanted.from_at is None else format_timestamp(wanted.from_at),
        "created_to": None if wanted.to_at is None else format_timestamp(wanted.to_at),
    }
