"""The routes that return sound."""

from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import ConfigDict, Field
from starlette.responses import Response

from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, RequestId, Tenant, XrIdPath
from soundmark.core.edge.refusals import invalid
from soundmark.core.features.codes.code_audio import bundle, service
from soundmark.core.problems import AudioBundleTooLarge, AudioUnavailable, CodeNotActive, CodeNotFound, ProjectNotFound
from soundmark.kit.http.responses.download import Download
from soundmark.wire.private.audio import RENDER, Protocol
from soundmark.wire.selection import Selection
from soundmark.wire.shape import Wire


class BundleCodes(Wire):
    """The Codes to render into one file."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"xr_ids": ["xr_bm9yZGxpY2h0LWV4YW1wbA"], "protocol": 4}]}
    )

    xr_ids: Selection
    protocol: Annotated[
        Protocol, Field(description="3: ultrasound normal; 4: ultrasound fast; 5: ultrasound fastest.")
    ] = 4


operations = Operations("Codes")

_PROTOCOLS: Final[dict[str, Protocol]] = {"3": 3, "4": 4, "5": 5}
_WAV_ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Mono, 48 kHz, 16-bit PCM.",
        "content": {RENDER.media_type: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_ZIP_TYPE: Final = "application/zip"
_ZIP_ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "A ZIP file without compression: `<xr_id>.wav` for each Code, in the order of the request.",
        "content": {_ZIP_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@operations.add(
    "GET",
    "/v1/codes/{xr_id}/audio",
    Operation("code.render", problems=(CodeNotFound, CodeNotActive, AudioUnavailable)),
    responses=_WAV_ANSWER,
    response_class=Response,
)
async def render_code(
    ctx: Ctx,
    scope: Tenant,
    xr_id: XrIdPath,
    request_id: RequestId,
    protocol: Annotated[
        str,
        Query(
            description="3: ultrasound normal; 4: ultrasound fast; 5: ultrasound fastest.",
            json_schema_extra={"enum": ["3", "4", "5"]},
        ),
    ] = "4",
) -> Response:
    """Render the frame of an active Code as a WAV file."""
    if protocol not in _PROTOCOLS:
        raise invalid("query", "protocol", "must be 3, 4 or 5")
    identity, wav = await service.render_code(ctx, scope, xr_id, protocol=_PROTOCOLS[protocol], request_id=request_id)
    headers = {"content-disposition": f'attachment; filename="{identity}.wav"'}
    return Response(wav, media_type=RENDER.media_type, headers=headers)


@operations.add(
    "POST",
    "/v1/codes/audio-bundle",
    Operation(
        "code.render", problems=(ProjectNotFound, CodeNotFound, CodeNotActive, AudioBundleTooLarge, AudioUnavailable)
    ),
    responses=_ZIP_ANSWER,
    response_class=Response,
)
async def bundle_codes(
    ctx: Ctx,
    scope: Tenant,
    project_id: Annotated[ResourceId, Query(description="The project of the Codes.")],
    body: BundleCodes,
    request_id: RequestId,
) -> Response:
    """Render the frames of active Codes as WAV files in one ZIP file. If any of them fails, the request fails."""
    content = await bundle.bundle_codes(
        ctx, scope, project_id, body.xr_ids, protocol=body.protocol, request_id=request_id
    )
    return Download(content, _ZIP_TYPE, name=f"codes-{project_id}.zip", headers={})
