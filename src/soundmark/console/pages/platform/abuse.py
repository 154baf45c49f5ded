"""Reports of abuse."""

from typing import Final, Literal, cast

from starlette.responses import Response

from soundmark.console.visit import Visit

PATH: Final = "/platform/abuse-reports"
# Half as many as of other lists: each has a form, and a page weighs 150 kB at most.
_REPORTS_SHOWN: Final = 50


async def show_reports(visit: Visit) -> Response:
    """Show a page of the reports: those that are open, unless the URL says otherwise."""
    status = visit.query("status") or "open"
    reports = await visit.core.platform.abuse_reports_page(
        # Core refuses what is no status.
        status=cast("Literal['open', 'closed']", status),
        limit=_REPORTS_SHOWN,
        cursor=visit.query("cursor"),
    )
    return visit.page("platform/abuse_reports.html", reports=reports, status_shown=status)


async def put_report(visit: Visit) -> Response:
    """Close or reopen a report, with a note."""
    form, report_id = visit.form, visit.parameter("report_id")
    status = cast("Literal['open', 'closed']", form.text("status"))
    changed = await visit.core.platform.put_abuse_report(report_id, status, form.raw("note").strip() or None)
    notice = "platform.report_closed" if changed.status == "closed" else "platform.report_reopened"
    return visit.redirect(PATH, notice)
