"""A report as the rows of a CSV, one for each number, as the API itself answers it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from soundmark.console.exports.answer_shapes import Report, Shape
from soundmark.console.exports.reconciliation import DIMENSIONS, INTEGRITY_COUNTERS
from soundmark.kit.text.timestamps import format_timestamp

CSV_COLUMNS: Final = ("dimension", "key", "metric", "value")

Row = tuple[str, str, str, str]


def list_filter_rows(filters: Mapping[str, str | None]) -> Iterator[Row]:
    """Yield the filters of an export; one that was not set is an empty cell."""
    for name, value in filters.items():
        yield "filters", "", name, value or ""


def list_report_rows(report: Report) -> Iterator[Row]:
    """Yield the rows of the report; a null key is an empty cell."""
    yield "report", "", "integration_id", report.integration_id
    yield "report", "", "mode", report.mode
    yield "report", "", "from", format_timestamp(report.period.from_)
    yield "report", "", "to", format_timestamp(report.period.to)
    yield "report", "", "campaign_id", report.filters.campaign_id or ""
    yield "report", "", "xr_id", report.filters.xr_id or ""
    yield "total", "", "events", str(report.events)
    yield "total", "", "estimated_reach", str(report.estimated_reach)
    yield "total", "", "average_frequency", f"{report.average_frequency:.4f}"
    for dimension, key in DIMENSIONS:
        yield from _list_rows(dimension, key, getattr(report, dimension))
    for counter in INTEGRITY_COUNTERS:
        yield "integrity_signals", "", counter, str(getattr(report.integrity_signals, counter))
    yield from _list_rows("integrity_signals", "day", report.integrity_signals.by_day)


def _list_rows(dimension: str, key: str, rows: Sequence[Shape]) -> Iterator[Row]:
    for row in rows:
        members = dict(row)
        name = members.pop(key)
        for metric, value in members.items():
            yield dimension, "" if name is None else str(name), metric, str(value)
