"""The exports of a report: made from the answers of Core, or refused on a page that names the reason."""

import asyncio
import re
from typing import Final

from soundmark_sdk.client import AnswerMalformed, AsyncClient
from soundmark_sdk.client.records import AudienceReport
from starlette.responses import Response

from soundmark.console.exports.documents import (
    ExportFile,
    export_aggregate,
    export_aggregate_csv,
    export_campaign_performance,
    export_code_performance,
)
from soundmark.console.exports.refusal import ExportRefused
from soundmark.console.exports.report_request import ReportRequest
from soundmark.console.forms import FieldRefused
from soundmark.console.pages.reports.report_filters import make_filters, read_request
from soundmark.console.troubles import TenantUnknown, Trouble
from soundmark.console.visit import Visit

# By the last part of their URLs.
EXPORTS: Final = ("aggregate.json", "aggregate.csv", "code-performance.json", "campaign-performance.json")
_BAD_GATEWAY: Final = 502
# The SDK's sentences about a member of an answer, which are English.
_MISSING: Final = re.compile(r"The service's (?P<place>.+) lacks the member (?P<member>.+)\.")
_INVALID: Final = re.compile(r"The service's (?P<member>.+) has the wrong type\.")


async def export(visit: Visit) -> Response:
    """Download an export of the report with these filters."""
    kind = visit.parameter("export")
    if kind not in EXPORTS:
        raise TenantUnknown
    request = read_request(visit, visit.parameter("integration_id"))
    try:
        file = await _make_export(visit, kind, request)
    except ExportRefused as refused:
        key = f"exports.refused.{refused.reason}"
        reason = visit.say(key, member=refused.member, expected=refused.expected, found=refused.found)
        return _show_refusal(visit, reason)
    except AnswerMalformed as failure:
        return _show_refusal(visit, _explain(visit, failure))
    headers = {"content-disposition": f'attachment; filename="{file.name}"', "cache-control": "no-store"}
    return Response(file.content, media_type=file.media_type, headers=headers)


async def _make_export(visit: Visit, kind: str, request: ReportRequest) -> ExportFile:
    """Return the file.

    Raises: ExportRefused; FieldRefused if the filter that it is about is missing. soundmark_sdk.ClientFailure.
    """
    now, core = visit.console.clock.now(), visit.core
    if kind == "code-performance.json":
        if request.xr_id is None:
            raise FieldRefused("xr_id", "exports.needs_code")
        detail = core.codes.show(request.xr_id, project_id=request.project_id)
        report, code = await asyncio.gather(_read_report(core, request), detail)
        return export_code_performance(request, report.document, code.document, now)
    if kind == "campaign-performance.json":
        if request.campaign_id is None:
            raise FieldRefused("campaign_id", "exports.needs_campaign")
        summing = core.campaigns.summary(request.campaign_id)
        report, summary = await asyncio.gather(_read_report(core, request), summing)
        return export_campaign_performance(request, report.document, summary.document, now)
    report = await _read_report(core, request)
    if kind == "aggregate.csv":
        return export_aggregate_csv(request, report.document)
    return export_aggregate(request, report.document, now)


async def _read_report(core: AsyncClient, request: ReportRequest) -> AudienceReport:
    return await core.audience.report(request.integration_id, make_filters(request))


def _explain(visit: Visit, failure: AnswerMalformed) -> str:
    """Return why an answer cannot be read, with the member that the SDK names."""
    sentence = str(failure)
    if (missing := _MISSING.fullmatch(sentence)) is not None:
        return visit.say("exports.refused.missing_member", member=f"{missing['place']}.{missing['member']}")
    if (wrong := _INVALID.fullmatch(sentence)) is not None:
        return visit.say("exports.refused.invalid_member", member=wrong["member"])
    return visit.say("exports.refused.malformed")


def _show_refusal(visit: Visit, reason: str) -> Response:
    visit.trouble = Trouble(_BAD_GATEWAY, "export_refused", visit.say("exports.refused"), reason)
    path = f"{visit.tenant_path}/integrations/{visit.parameter('integration_id')}/report"
    return visit.page("reports/export_refused.html", report_path=f"{path}?{visit.request.url.query}")
