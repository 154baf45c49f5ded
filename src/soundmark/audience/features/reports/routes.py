"""The route of reports."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from soundmark.audience.edge import Ctx, IntegrationPath, InWorkspaceIfNamed
from soundmark.audience.features.reports import service
from soundmark.audience.features.reports.service import Wanted
from soundmark.audience.features.reports.wire import report_view
from soundmark.kit.http import JsonRoute
from soundmark.kit.negotiation import preferred
from soundmark.kit.problems import NotAcceptable
from soundmark.wire.audience_report import report_csv
from soundmark.wire.shape import CampaignId, Timestamp, XrId

router = APIRouter(route_class=JsonRoute)

_JSON: Final = "application/json"
_CSV: Final = "text/csv"
_VARY: Final = {"vary": "Accept"}


async def _wanted(
    from_at: Annotated[Timestamp | None, Query(alias="from")] = None,
    to_at: Annotated[Timestamp | None, Query(alias="to")] = None,
    campaign_id: Annotated[CampaignId | None, Query()] = None,
    xr_id: Annotated[XrId | None, Query()] = None,
) -> Wanted:
    return Wanted(from_at, to_at, campaign_id, xr_id)


@router.get("/v1/reports/{integration_id}")
async def read_report(
    request: Request,
    ctx: Ctx,
    workspace: InWorkspaceIfNamed,
    integration_id: IntegrationPath,
    wanted: Annotated[Wanted, Depends(_wanted)],
) -> Response:
    """Read what an integration measured, as JSON or as CSV: of a project, or for the administration of any."""
    media_type = preferred(request.headers.getlist("accept"), (_JSON, _CSV))
    if media_type is None:
        raise NotAcceptable(f"This can be answered as {_JSON} and {_CSV}.")
    workspace = workspace or await service.workspace_of(ctx, integration_id)
    report = report_view(await service.read_report(ctx, workspace, integration_id, wanted), wanted)
    content = report.model_dump_json().encode() if media_type == _JSON else report_csv(report)
    return Response(content, media_type=media_type, headers=_VARY)
