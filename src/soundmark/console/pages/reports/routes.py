"""The pages of reports, and their exports."""

import asyncio
from datetime import UTC, date, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from soundmark_sdk.client import ApiProblem, ClientFailure
from soundmark_sdk.client.records import AudienceReport, Integration
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.exports.report_request import ReportRequest
from soundmark.console.forms import FieldRefused
from soundmark.console.lookups import find_integration_beside
from soundmark.console.pages.reports.comparison import find_report_before, list_presets, write_change
from soundmark.console.pages.reports.exporting import export
from soundmark.console.pages.reports.named_codes import (
    find_by_address,
    find_newest,
    match_name,
    name_codes,
    read_code_name,
)
from soundmark.console.pages.reports.report_charts import (
    draw_days,
    draw_frequencies,
    draw_integrity,
    draw_legacy_days,
    read_period,
)
from soundmark.console.pages.reports.report_filters import list_chosen_days, make_filters, read_request
from soundmark.console.pages.reports.tables import ROWS_MAX, list_tables
from soundmark.console.parts import read_part
from soundmark.console.routing import page
from soundmark.console.troubles import describe
from soundmark.console.visit import Visit
from soundmark.kit.text.timestamps import format_timestamp


async def show_report(visit: Visit) -> Response:
    """Show the report of an integration. The filters stay on the page if there is no report for them.

    The name of a Code leads to the Code, or to a choice if several have it.
    """
    integration_id, name = visit.parameter("integration_id"), read_code_name(visit)
    shown, campaigns, integration, newest = await asyncio.gather(
        _find_report(visit) if name is None else _find_by_address(visit, name),
        read_part(visit.core.campaigns.page()),
        find_integration_beside(visit, integration_id),
        find_newest(visit),
    )
    if name is not None and visit.trouble is None:
        shown["matches"] = matches = match_name(name, shown["matches"], newest)
        if len(matches) == 1:
            return visit.redirect(visit.here(xr_id=next(iter(matches))))
        refused = FieldRefused("xr_id", "reports.code.several" if matches else "reports.code.none")
        visit.trouble = describe(refused, visit.language)
    keys = [row.key for table in shown.get("tables", ()) if table.key == "xr_id" for row in table.rows]
    chosen = visit.query("xr_id") or ""
    return visit.page(
        "reports/report.html",
        integration_id=integration_id,
        integration=integration,
        first_kept_day=None if integration is None else _find_first_kept_day(visit, integration),
        # The newest ones, which the form offers, whether or not there is a report.
        campaign_names={each.id: each.name for each in campaigns.data} if campaigns else {},
        campaigns_are_known=campaigns is not None,
        chosen_days=list_chosen_days(visit),
        presets=list_presets(visit),
        newest_codes=newest,
        code_names=await name_codes(visit, newest, [chosen, *keys]),
        **{"report": None, "matches": {}, **shown},
    )


async def show_legacy_report(visit: Visit) -> Response:
    """Show the daily totals of a project from before XR v1."""
    shown: dict[str, Any] = {"report": None}
    try:
        request = read_request(visit, "")
        report = await visit.core.audience.legacy_report(make_filters(request))
        shown = {"report": report, "period": read_period(report.period), "days": draw_legacy_days(report)}
    except (FieldRefused, ClientFailure) as refused:
        if isinstance(refused, ApiProblem) and refused.status == HTTPStatus.UNAUTHORIZED:
            raise  # The session has ended, which concerns the whole page.
        visit.trouble = describe(refused, visit.language)
    return visit.page("reports/legacy.html", chosen_days=list_chosen_days(visit), **shown)


async def _find_report(visit: Visit) -> dict[str, Any]:
    """Return what the page shows of the report; without a report, set the visit's trouble and return nothing."""
    try:
        request = read_request(visit, visit.parameter("integration_id"))
        reading = visit.core.audience.report(request.integration_id, make_filters(request))
        report, before = await asyncio.gather(reading, find_report_before(visit, request))
        return _describe_report(visit, request, report, before)
    except (FieldRefused, ClientFailure) as refused:
        visit.trouble = describe(refused, visit.language)
        return {}


def _find_first_kept_day(visit: Visit, integration: Integration) -> date:
    """Return the oldest UTC day whose events a report counts."""
    return visit.console.clock.now().astimezone(UTC).date() - timedelta(days=integration.retention_days)


async def _find_by_address(visit: Visit, name: str) -> dict[str, Any]:
    """Return the Codes whose address begins with a name; if they cannot be listed, set the visit's trouble."""
    try:
        return {"matches": await find_by_address(visit, name)}
    except ClientFailure as refused:
        visit.trouble = describe(refused, visit.language)
        return {}


def _describe_report(
    visit: Visit, request: ReportRequest, report: AudienceReport, before: AudienceReport | None
) -> dict[str, Any]:
    """Return what the page shows of a report."""
    begin, end = read_period(report.period)
    # The exports name the period exactly, so that they hold the numbers on the page.
    exact = {"from": format_timestamp(begin), "to": format_timestamp(end)}
    whole = visit.query("all")
    filters = {"campaign_id": request.campaign_id, "xr_id": request.xr_id}
    exact |= {name: value for name, value in filters.items() if value is not None}
    return {
        "report": report,
        "notes": {
            name: write_change(visit, None if before is None else getattr(before, name), getattr(report, name))
            for name in ("events", "estimated_reach")
        },
        "period": (begin, end),
        "days": draw_days(report),
        "frequencies": draw_frequencies(report),
        "integrity": draw_integrity(report),
        "tables": list_tables(report, whole=whole),
        "integrity_rows": report.integrity_signals.by_day[slice(None if whole == "integrity" else -ROWS_MAX, None)],
        "export_query": urlencode(exact),
    }


_INTEGRATIONS: Final = "/organizations/{organization_id}/projects/{project_id}/integrations"
_REPORT: Final = f"{_INTEGRATIONS}/{{integration_id}}/report"
routes: Final[list[Route]] = [
    page("/organizations/{organization_id}/projects/{project_id}/legacy-report", show_legacy_report),
    page(_REPORT, show_report),
    page(f"{_REPORT}/exports/{{export}}", export, offered_by=f"{_REPORT}?{{query}}"),
]
