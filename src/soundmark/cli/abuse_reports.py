"""`soundmark platform abuse-reports`: what receivers reported about Codes."""

from typing import Annotated, Final

import typer

from soundmark.cli import Refused
from soundmark.cli.api import show_json, show_table
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.options import AsJson
from soundmark.core.context import Context
from soundmark.core.domain.platform.abuse_report import AbuseStatus, OpenedReport
from soundmark.core.features.platform.abuse.service import list_reports
from soundmark.core.features.platform.abuse.wire import AbuseReportPage, report_view
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.text.paging import Page
from soundmark.settings import KeysSettings

_LISTED_MAX: Final = 10_000


def abuse_reports(
    *,
    status: Annotated[AbuseStatus | None, typer.Option(help="Only reports of this status.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=_LISTED_MAX, help="How many to print at most.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the reports of abuse, newest first, with what people wrote until it is deleted.

    Reports are closed over the API, with `PUT /v1/platform/abuse-reports/{report_id}`.
    """
    given = read_settings(KeysSettings, data_dir)

    async def command(ctx: Context) -> Page[OpenedReport]:
        return await list_reports(ctx, status=status, before=None, limit=limit)

    try:
        page = run_on_core(given, "platform", command)
    except SealBroken as broken:
        raise Refused(f"this master key does not open a report: {broken}") from None
    views = [report_view(opened) for opened in page.entries]
    if as_json:
        show_json(AbuseReportPage(data=views, next_cursor=None).model_dump(mode="json"))
        return
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
    if page.next_position is not None:
        typer.echo(f"there are more than {limit}; use --status or --limit")
