"""The routes of abuse reports."""

from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Path, Query

from soundmark.core.domain.platform.abuse_report import AbuseStatus
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx, CursorText, Limit
from soundmark.core.features.platform.abuse import example, service
from soundmark.core.features.platform.abuse.service import NewReport
from soundmark.core.features.platform.abuse.wire import (
    AbuseReportPage,
    AbuseReportView,
    CreateAbuseReport,
    PutAbuseReport,
    ReceivedReport,
    report_view,
)
from soundmark.core.problems import AbuseReportNotFound
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor

operations = Operations("Platform")

_HEADERS: Final[dict[str, Any]] = {
    name: {"schema": {"type": "string"}, "description": description, "example": value}
    for name, description, value in (
        ("RateLimit-Policy", "The limit of one client IP address in an hour.", '"abuse";q=10;w=3600'),
        ("RateLimit", "How many reports are left, and the seconds until the hour ends.", '"abuse";r=9;t=1800'),
    )
}


@operations.add(
    "POST",
    "/v1/abuse-reports",
    Operation(None, problems=(RateLimited,), note="anybody; ten an hour for each client IP address"),
    status=HTTPStatus.ACCEPTED,
    responses={HTTPStatus.ACCEPTED: {"headers": _HEADERS}},
    example=ReceivedReport(),
)
async def report_abuse(ctx: Ctx, body: CreateAbuseReport) -> ReceivedReport:
    """Report a Code that harms listeners. Pages of every origin may send this.

    The response is the same whether the Code exists or not. No address is stored. The text and the contact are deleted
    90 days after the report was closed, and 365 days after it was sent in any case.
    """
    given = body.model_fields_set
    await service.receive_report(
        ctx,
        NewReport(
            token=body.token if "token" in given else None,
            xr_id=body.xr_id if "xr_id" in given else None,
            category=body.category,
            text=body.text,
            contact=body.contact,
        ),
    )
    return ReceivedReport()


@operations.add(
    "GET",
    "/v1/platform/abuse-reports",
    Operation("platform.read", tenant="none", problems=(InvalidCursor,)),
    example=AbuseReportPage(data=[report_view(example.REPORT)], next_cursor=None),
)
async def list_abuse_reports(
    ctx: Ctx,
    status: Annotated[AbuseStatus | None, Query(description="Only reports of this status.")] = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> AbuseReportPage:
    """List the abuse reports, newest first."""
    cursors = ctx.cursors.bind("abuse_reports", status=status)
    page = await service.list_reports(ctx, status=status, before=cursors.read(cursor), limit=limit)
    return cursors.show(AbuseReportPage, page, report_view)


@operations.add(
    "PUT",
    "/v1/platform/abuse-reports/{report_id}",
    Operation("platform.change", tenant="none", problems=(AbuseReportNotFound,)),
    example=report_view(example.REPORT),
)
async def put_abuse_report(
    ctx: Ctx,
    user: CallingUser,
    report_id: Annotated[ResourceId, Path(description="The report's id.", examples=[example.REPORT.report.id])],
    body: PutAbuseReport,
) -> AbuseReportView:
    """Close or reopen an abuse report, and replace the note on it."""
    changed = await service.put_report(ctx, report_id, status=body.status, note=body.note, subject_id=user.subject_id)
    return report_view(changed)
