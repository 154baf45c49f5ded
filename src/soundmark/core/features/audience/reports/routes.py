"""The routes of reports."""

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, RequestId, Tenant
from soundmark.core.features.audience.reports import example, service
from soundmark.core.features.audience.reports.service import ReportFilter
from soundmark.core.problems import AudienceUnavailable, CampaignNotFound, CodeNotFound, ProjectNotFound
from soundmark.kit.http.responses.negotiation import choose_media_type
from soundmark.kit.http.responses.problems import NotAcceptable
from soundmark.wire.audience_report import CSV_COLUMNS, AudienceReport, LegacyReport, legacy_csv, report_csv
from soundmark.wire.private.problems import IntegrationNotFound, ReportTooLarge
from soundmark.wire.shape import Timestamp, Wire

operations = Operations("Audience")

R = TypeVar("R", bound=Wire)

_JSON: Final = "application/json"
_CSV: Final = "text/csv"
_VARY: Final = {"vary": "Accept"}
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "content": {
            _CSV: {
                "schema": {
                    "type": "string",
                    "description": (
                        "The same report as CSV (RFC 4180, UTF-8) with the columns "
                        f"{', '.join(CSV_COLUMNS)}, with one line for each number. A null key is an empty cell."
                    ),
                }
            }
        }
    }
}

ProjectQuery = Annotated[ResourceId, Query(description="The project of the integration.")]
FromQuery = Annotated[
    Timestamp | None,
    Query(
        alias="from",
        description="Only events at or after this time (RFC 3339), before `to`. Default: the start of the retention.",
    ),
]
ToQuery = Annotated[
    Timestamp | None, Query(alias="to", description="Only events before this time (RFC 3339). Default: now.")
]
CampaignQuery = Annotated[ResourceId | None, Query(description="Only the Codes of this campaign, archived or not.")]
CodeQuery = Annotated[ResourceId | None, Query(description="Only this Code.")]


async def _read_filter(
    project_id: ProjectQuery,
    from_at: FromQuery = None,
    to_at: ToQuery = None,
    campaign_id: CampaignQuery = None,
    xr_id: CodeQuery = None,
) -> ReportFilter:
    """Return the filters of a report (a dependency)."""
    return ReportFilter(project_id, from_at, to_at, campaign_id, xr_id)


async def _read_legacy_filter(
    project_id: ProjectQuery, from_at: FromQuery = None, to_at: ToQuery = None
) -> ReportFilter:
    """Return the filters of a legacy report (a dependency)."""
    return ReportFilter(project_id, from_at, to_at)


@operations.add(
    "GET",
    "/v1/audience/reports/{integration_id}",
    Operation(
        "audience.report",
        problems=(
            NotAcceptable,
            ProjectNotFound,
            IntegrationNotFound,
            CampaignNotFound,
            CodeNotFound,
            ReportTooLarge,
            AudienceUnavailable,
        ),
    ),
    responses=_ANSWERS,
    response_model=AudienceReport,
    example=example.REPORT,
)
async def read_audience_report(
    request: Request,
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    integration_id: Annotated[
        ResourceId, Path(description="The integration's id.", examples=["int_c3R1ZGlvLW1lYXN1cmVtZW50"])
    ],
    filters: Annotated[ReportFilter, Depends(_read_filter)],
) -> Response:
    """Return the report of an integration as JSON or CSV (`Accept`). A revoked integration still has its report."""
    media_type = _media_type(request)
    report = await service.read_report(ctx, scope, integration_id, filters, request_id=request_id)
    return _answer(report, media_type, report_csv)


@operations.add(
    "GET",
    "/v1/audience/legacy-report",
    Operation("audience.legacy_report", problems=(NotAcceptable, ProjectNotFound, ReportTooLarge, AudienceUnavailable)),
    responses=_ANSWERS,
    response_model=LegacyReport,
    example=example.LEGACY_REPORT,
)
async def read_legacy_report(
    request: Request,
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    filters: Annotated[ReportFilter, Depends(_read_legacy_filter)],
) -> Response:
    """Return the daily totals from before XR v1 as JSON or CSV (`Accept`), for every day that the period overlaps."""
    media_type = _media_type(request)
    report = await service.read_legacy_report(ctx, scope, filters, request_id=request_id)
    return _answer(report, media_type, legacy_csv)


def _media_type(request: Request) -> str:
    """Return the media type of the response that the caller prefers.

    Raises: NotAcceptable.
    """
    media_type = choose_media_type(request.headers.getlist("accept"), (_JSON, _CSV))
    if media_type is None:
        raise NotAcceptable(f"This is available as {_JSON} and {_CSV}.")
    return media_type


def _answer(report: R, media_type: str, as_csv: Callable[[R], bytes]) -> Response:
    content = report.model_dump_json().encode() if media_type == _JSON else as_csv(report)
    return Response(content, media_type=media_type, headers=_VARY)
