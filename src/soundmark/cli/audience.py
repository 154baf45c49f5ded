"""`soundmark audience`: reports, and the import of older daily counts."""

import csv
import io
import re
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from soundmark_sdk.client import ReportFilters
from soundmark_sdk.client.records import AudienceReport

from soundmark.cli import Refused
from soundmark.cli.api import open_client, show_facts, show_json, show_table
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.intents import printable
from soundmark.cli.options import ProjectCall, command, read_moment
from soundmark.cli.pictures import load_drawing
from soundmark.cli.whole_files import write_whole
from soundmark.core.context import Context
from soundmark.core.features.audience.legacy_import.service import ImportRefused, import_legacy_days
from soundmark.core.problems import AudienceUnavailable
from soundmark.kit.clock import SystemClock
from soundmark.kit.http.requests.strict_json import INTEGER_MAX
from soundmark.kit.text.ids import mint
from soundmark.settings import CellCommandSettings

app = typer.Typer(add_completion=False, no_args_is_help=True)


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_COUNT: Final = re.compile(r"0|[1-9]\d{0,15}", re.ASCII)
_COLUMNS: Final = ["day", "events"]
_FILE_BYTES_MAX: Final = 1024 * 1024  # 27 years of days.
_DAYS_MAX: Final = 10_000  # As many as Audience imports at once, all or none.
_ROWS_SHOWN: Final = 15
_PICTURES: Final = {".png", ".svg", ""}


@dataclass(frozen=True, slots=True)
class ReportFilterOptions:
    """The options that say which events to report, named as in `ReportFilters`."""

    from_at: Annotated[
        datetime | None,
        typer.Option("--from", parser=read_moment, metavar="TIME", help="Only events at or after this time, RFC 3339."),
    ] = None
    to_at: Annotated[
        datetime | None, typer.Option("--to", parser=read_moment, metavar="TIME", help="Only events before this time.")
    ] = None
    campaign_id: Annotated[
        str | None, typer.Option("--campaign", metavar="CAMPAIGN", help="Only this campaign's Codes.")
    ] = None
    xr_id: Annotated[str | None, typer.Option("--code", metavar="XR_ID", help="Only this Code.")] = None


@app.callback()
def audience() -> None:
    """Report measurements, over Core's API, and import older daily counts."""


@command(app)
def report(
    integration_id: Annotated[str, typer.Argument(metavar="INTEGRATION", help="The integration's id.")],
    *,
    filters: ReportFilterOptions,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Also draw reach, frequency and integrity to this file: SVG if its name ends in .svg, otherwise PNG.",
        ),
    ] = None,
    call: ProjectCall,
) -> None:
    """Show an integration's report. The default period is from the start of its retention until now."""
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        raise typer.BadParameter(f"{printable(plot.suffix)} is not a supported picture format; use .png or .svg")
    # Before the request, so that a missing extra costs none.
    drawing: Any = load_drawing("report_picture") if plot is not None else None
    with open_client(call.connection, call.organization, call.project) as client:
        found = client.audience.report(integration_id, ReportFilters(**asdict(filters)))
    if plot is not None:
        with write_whole(plot) as file:
            drawing.draw_report(found, file, is_svg=plot.suffix.lower() == ".svg")
    if call.as_json:
        show_json(found.document)
        return
    _show(found)
    if plot is not None:
        typer.echo(printable(f"drawn: {plot}"))


@command(app, "import-legacy")
def import_legacy(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.csv", help="A CSV file with the columns day,events: a UTC day and a count.")
    ],
    organization: Annotated[str, typer.Option("--organization", metavar="ORG", help="The organisation's id.")],
    project: Annotated[str, typer.Option("--project", metavar="PROJECT", help="The project's id.")],
    data_dir: DataDir = None,
) -> None:
    """Import daily event counts from before XR v1: all days of the file, or none.

    The import replaces a day that was imported before, so repeating it is safe. Imported counts are kept separate from
    measured events.
    """
    days = read_days(file)
    given = read_settings(CellCommandSettings, data_dir)

    async def command(ctx: Context) -> None:
        await import_legacy_days(ctx, organization, project, days, request_id=mint(ctx.entropy, "req_"))

    try:
        run_on_core(given, "audience", command)
    except ImportRefused as refused:
        raise Refused(printable(str(refused))) from None
    except AudienceUnavailable:
        raise Refused("Audience did not confirm the import; repeating it is safe") from None
    typer.echo(f"{_format_count(len(days), 'day')}, {_format_count(sum(days.values()), 'event')}")


def read_days(path: Path) -> dict[date, int]:
    """Return the events of each day in a file.

    Raises: Refused, naming the first wrong line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise Refused(f"{printable(str(path))}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"{printable(str(path))} is not UTF-8") from None
    if len(content) > _FILE_BYTES_MAX:
        raise Refused(f"{printable(str(path))} is larger than 1 MiB")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    days: dict[date, int] = {}
    try:
        if next(lines, None) != _COLUMNS:
            raise Refused(f"{printable(str(path))}: its first line must be day,events")
        for row in filter(None, lines):
            day, events = _read_row(row, lines.line_num)
            if day in days:
                raise Refused(f"line {lines.line_num}: {day} appears twice")
            days[day] = events
    except csv.Error as error:
        raise Refused(f"line {lines.line_num}: {error}") from None
    if not 0 < len(days) <= _DAYS_MAX:
        raise Refused(f"there must be 1 to {_DAYS_MAX:,} days, not {len(days):,}")
    return days


def _format_count(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _read_row(row: list[str], line: int) -> tuple[date, int]:
    if len(row) != len(_COLUMNS) or not _DAY.fullmatch(row[0]) or not _COUNT.fullmatch(row[1]):
        raise Refused(f"line {line}: must be a day and a count, such as 2026-01-31,412")
    try:
        day = date.fromisoformat(row[0])
    except ValueError:
        raise Refused(f"line {line}: {row[0]} is not a date") from None
    if day > SystemClock().now().date():
        raise Refused(f"line {line}: {day} is in the future")
    if int(row[1]) > INTEGER_MAX:
        raise Refused(f"line {line}: a count is at most {INTEGER_MAX}")
    return day, int(row[1])


def _show(found: AudienceReport) -> None:
    signals = found.integrity_signals
    period = found.document["period"]
    assert isinstance(period, dict), "the client has read it"
    show_facts(
        [
            ("Integration", f"{found.integration_id} ({found.mode})"),
            ("Period", f"{period.get('from')} up to {period.get('to')}"),
            ("Events", f"{found.events:,}"),
            ("Reach", f"{found.estimated_reach:,}"),
            ("Average frequency", f"{found.average_frequency:.4f}"),
            ("Event replays", f"{signals.event_replays:,}"),
            ("Code and token repeated", f"{signals.code_token_duplicates:,}"),
            ("Proof replays", f"{signals.proof_replays:,}"),
        ]
    )
    _table(("Day", "Events", "Reach"), [(row.day, row.events, row.estimated_reach) for row in found.by_day])
    _table(("Events of a token", "Tokens"), [(row.frequency, row.tokens) for row in found.by_frequency])
    _table(
        ("Campaign", "Events", "Reach"),
        [(row.campaign_id or "none", row.events, row.estimated_reach) for row in found.by_campaign],
    )
    _table(("Code", "Events", "Reach"), [(row.xr_id, row.events, row.estimated_reach) for row in found.by_xr_code])
    _table(("Receiver", "Events"), [(row.receiver_class, row.events) for row in found.by_receiver])
    _table(("Country", "Events"), [(row.country or "none", row.events) for row in found.by_country])


def _table(headings: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Print the rows; of many, the last days or otherwise the first rows."""
    if not rows:
        return
    left = len(rows) - _ROWS_SHOWN
    shown = rows[-_ROWS_SHOWN:] if headings[0] == "Day" else rows[:_ROWS_SHOWN]
    show_table(headings, [[f"{one:,}" if isinstance(one, int) else one for one in row] for row in shown])
    if left > 0:
        typer.echo(f"and {left:,} more; --json shows them all")
