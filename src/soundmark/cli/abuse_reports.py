"""`soundmark platform abuse-reports`, `close-abuse-report`, `reopen-abuse-report`: what people report about Codes."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from pydantic import ValidationError

from soundmark.cli import Refused
from soundmark.cli.api import show_json, show_table
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.options import AsJson
from soundmark.core.access.operator import OPERATOR
from soundmark.core.context import Context
from soundmark.core.domain.platform.abuse_report import TEXT_CHARS_MAX, AbuseStatus, OpenedReport
from soundmark.core.features.platform.abuse.service import list_reports, put_report
from soundmark.core.features.platform.abuse.wire import AbuseReportPage, AbuseReportView, PutAbuseReport, report_view
from soundmark.core.problems import AbuseReportNotFound
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.text.ids import may_be_id
from soundmark.kit.text.paging import Page
from soundmark.settings import KeysSettings

T = TypeVar("T")

_LISTED_MAX: Final = 10_000
_Report = Annotated[str, typer.Argument(metavar="REPORT", help="The report's id.")]
_Note = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help=f"For administrators of the platform, 1 to {TEXT_CHARS_MAX} characters. It replaces the note before.",
    ),
]


def abuse_reports(
    *,
    status: Annotated[AbuseStatus | None, typer.Option(help="Only reports of this status.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=_LISTED_MAX, help="How many to print at most.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the reports of abuse, newest first, with what people wrote until it is deleted."""

    async def command(ctx: Context) -> Page[OpenedReport]:
        return await list_reports(ctx, status=status, before=None, limit=limit)

    page = _run(data_dir, command)
    views = [report_view(opened) for opened in page.entries]
    if as_json:
        show_json(AbuseReportPage(data=views, next_cursor=None).model_dump(mode="json"))
        return
    _show(views)
    if page.next_position is not None:
        typer.echo(f"there are more than {limit}; use --status or --limit")


def close_abuse_report(
    report: _Report, *, note: _Note = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Close a report of abuse. What people wrote about it is deleted 90 days later."""
    _put(report, "closed", note, data_dir, as_json=as_json)


def reopen_abuse_report(
    report: _Report, *, note: _Note = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Open a report of abuse again. Text that was deleted meanwhile does not come back."""
    _put(report, "open", note, data_dir, as_json=as_json)


def _put(report: str, status: AbuseStatus, note: str | None, data_dir: Path | None, *, as_json: bool) -> None:
    try:
        checked = PutAbuseReport(status=status, note=note)
    except ValidationError:
        raise typer.BadParameter(f"the note must have 1 to {TEXT_CHARS_MAX} characters") from None

    async def command(ctx: Context) -> OpenedReport:
        if not may_be_id(report):
            raise AbuseReportNotFound
        return await put_report(ctx, report, status=checked.status, note=checked.note, subject_id=OPERATOR.subject_id)

    try:
        view = report_view(_run(data_dir, command))
    except AbuseReportNotFound:
        raise Refused(f"there is no report {report}") from None
    if as_json:
        show_json(view.model_dump(mode="json"))
    else:
        _show([view])


def _run(data_dir: Path | None, command: Callable[[Context], Awaitable[T]]) -> T:
    """Raises: Refused, also for a report that was sealed under another master key; whatever `command` raises."""
    try:
        return run_on_core(read_settings(KeysSettings, data_dir), "platform", command)
    except SealBroken as broken:
        raise Refused(f"this master key does not open a report: {broken}") from None


def _show(views: list[AbuseReportView]) -> None:
    show_table(
        ("Report", "Status", "Category", "Code", "Organisation", "Created", "Text", "Contact", "Note"),
        [
            (
                view.id,
                view.status,
                view.category,
                view.xr_id,
                view.organization_id,
                view.created_at,
                view.text,
                view.contact,
                view.note,
            )
            for view in views
        ],
    )
