"""The route of reports."""

from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from soundmark.audience.domain.integration import Workspace
from soundmark.audience.edge import Ctx, IntegrationPath, serve
from soundmark.kit.http.requests.routes import JsonRoute
from soundmark.kit.http.responses.negotiation import choose_media_type
from soundmark.kit.http.responses.problems import FieldError, NotAcceptable, ValidationFailed
from soundmark.wire.audience_report import report_csv
from soundmark.wire.private.measurements import READ_REPORT, ReportQuery

router = APIRouter(route_class=JsonRoute)

_JSON: Final = "application/json"
_CSV: Final = "text/csv"
_VARY: Final = {"vary": "Accept"}


@serve(router, READ_REPORT)
async def read_report(
    request: Request, ctx: Ctx, integration_id: IntegrationPath, query: Annotated[ReportQuery, Query()]
) -> Response:
    """Read what an integration measured, as JSON or as CSV: of one project, or of any for the administration."""
    media_type = choose_media_type(request.headers.getlist("accept"), (_JSON, _CSV))
    if media_type is None:
        raise NotAcceptable(f"This is available as {_JSON} and {_CSV}.")
    # Imported with the first report, because NumPy takes 14 MiB, and most processes record all day and count seldom.
    from soundmark.audience.features.reports import service  # noqa: PLC0415 - see above
    from soundmark.audience.features.reports.wire import report_view  # noqa: PLC0415 - see above

    workspace = _find_workspace(query) or await service.get_workspace(ctx, integration_id)
    report = report_view(await service.read_report(ctx, workspace, integration_id, query), query)
    content = report.model_dump_json().encode() if media_type == _JSON else report_csv(report)
    return Response(content, media_type=media_type, headers=_VARY)


def _find_workspace(query: ReportQuery) -> Workspace | None:
    """Return the project that the query names; None if it names none.

    Raises: ValidationFailed if it names only an organisation or only a project.
    """
    if query.organization_id is not None and query.project_id is not None:
        return Workspace(query.organization_id, query.project_id)
    if query.organization_id is None and query.project_id is None:
        return None
    missing = "organization_id" if query.organization_id is None else "project_id"
    raise ValidationFailed(errors=(FieldError("query", f"/{missing}", "must be given together with the other one"),))
