"""The charts of a report."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Final

from soundmark_sdk.client import AnswerMalformed
from soundmark_sdk.client.records import AudienceReport, LegacyReport, ReportPeriod

from soundmark.console.charts import Chart, draw_columns, list_days
from soundmark.console.exports.reconciliation import INTEGRITY_COUNTERS
from soundmark.kit.text.timestamps import parse_timestamp

# Higher frequencies share one column: a chart cannot show hundreds.
_FREQUENCY_MAX: Final = 12


def read_period(period: ReportPeriod) -> tuple[datetime, datetime]:
    """Return both ends of a period. The record has no name for the first: `from` is Python's.

    Raises: soundmark_sdk.AnswerMalformed.
    """
    try:
        return parse_timestamp(str(period.document.get("from"))), period.to
    except ValueError:
        raise AnswerMalformed("The service's answer.period.from is no time.") from None


def draw_days(report: AudienceReport) -> Chart | None:
    """Return the chart of events and reach by day; None without events."""
    rows = {_read_day(row.day): row for row in report.by_day}
    columns = [
        (day, {"events": rows[day].events, "estimated_reach": rows[day].estimated_reach} if day in rows else {})
        for day in _days_of(report.period, list(rows))
    ]
    return draw_columns(columns, is_stacked=False)


def draw_frequencies(report: AudienceReport) -> Chart | None:
    """Return the chart of measurement tokens by their number of events; None without events."""
    tokens = {row.frequency: row.tokens for row in report.by_frequency}
    highest = min(_FREQUENCY_MAX, max(tokens, default=0))
    columns: list[tuple[str | int | date, dict[str, int]]] = [
        (frequency, {"tokens": tokens.get(frequency, 0)}) for frequency in range(1, highest + 1)
    ]
    if above := sum(count for frequency, count in tokens.items() if frequency > _FREQUENCY_MAX):
        columns.append((f"> {_FREQUENCY_MAX}", {"tokens": above}))
    return draw_columns(columns, is_stacked=False)


def draw_integrity(report: AudienceReport) -> Chart | None:
    """Return the chart of integrity signals by day; None without one."""
    rows = {_read_day(row.day): row for row in report.integrity_signals.by_day}
    columns = [
        (day, {counter: getattr(rows[day], counter) for counter in INTEGRITY_COUNTERS} if day in rows else {})
        for day in _days_of(report.period, list(rows))
    ]
    return draw_columns(columns, is_stacked=True)


def draw_legacy_days(report: LegacyReport) -> Chart | None:
    """Return the chart of events by day; None without events."""
    events = {_read_day(row.day): row.events for row in report.by_day}
    columns = [(day, {"events": events.get(day, 0)}) for day in _days_of(report.period, list(events))]
    return draw_columns(columns, is_stacked=False)


def _read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise AnswerMalformed("The service's answer.by_day[].day is no day.") from None


def _days_of(period: ReportPeriod, named: Sequence[date]) -> list[date]:
    first, end = read_period(period)
    return list_days(first.date(), (end - timedelta(milliseconds=1)).date(), named)
