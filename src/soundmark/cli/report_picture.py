"""A picture of an Audience report: reach by day, frequency, and replays."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import BinaryIO, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from soundmark_sdk.client.records import AudienceReport

from soundmark.cli.intents import printable
from soundmark.kit.text.timestamps import parse_timestamp

_PAPER, _INK, _SOFT = "#fbfbf9", "#1d2125", "#5b636b"
_REACH, _EVENTS = "#8a2a6b", "#d9b8cd"
_SIGNALS: Final = (
    ("event_replays", "event replays", "#33658a"),
    ("code_token_duplicates", "Code and token repeated", "#e0a458"),
    ("proof_replays", "proof replays", "#b23a48"),
)
# Higher frequencies share one bar: a picture cannot show hundreds of bars.
_FREQUENCY_MAX: Final = 12
_HEADROOM: Final = 1.16
_DAYS_MIN: Final = 7
_DAYS_NAMED_MAX: Final = 9
_HALF_A_DAY: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Days:
    """Every UTC day that a report's period touches, including those without an event."""

    days: tuple[date, ...]

    @property
    def numbers(self) -> list[float]:
        """The days as an axis counts them."""
        numbers: list[float] = date2num(self.days).tolist()  # type: ignore[no-untyped-call]  # matplotlib's dates have no types
        return numbers

    def spread(self, counts: dict[str, int]) -> list[int]:
        """Return the count of each day, 0 where there is none."""
        return [counts.get(day.isoformat(), 0) for day in self.days]


def draw_report(report: AudienceReport, file: BinaryIO, *, is_svg: bool) -> None:
    """Write the picture of `report` to `file`: SVG or PNG, 1320 by 1080."""
    # With a salt of its own, and without a date, the same picture is the same file.
    with rc_context({"svg.hashsalt": "soundmark"}):
        if is_svg:
            report_figure(report).savefig(file, format="svg", metadata={"Date": None})
        else:
            report_figure(report).savefig(file, format="png")


def report_figure(report: AudienceReport) -> Figure:
    """Return the picture: reach on each day of the period, frequency, and replays."""
    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.14)  # Inches.
    figure = Figure(figsize=(11, 9), dpi=120, layout=layout, facecolor=_PAPER)
    FigureCanvasAgg(figure)
    by_day, frequencies, integrity = figure.subplots(3, 1, height_ratios=(1.5, 1, 1))
    facts = f"{report.events:,} events, reach {report.estimated_reach:,}, each heard {report.average_frequency:g} times"
    by_day.set_title(
        f"Audience of {printable(report.integration_id)}",
        loc="left",
        fontsize=12,
        fontweight="bold",
        color=_INK,
        parse_math=False,
    )
    by_day.set_title(f"{period_name(report)}\n{facts if report.events else ''}", loc="right", fontsize=10, color=_SOFT)
    days = _days_of(report)
    _draw_days(by_day, report, days)
    _draw_frequencies(frequencies, report)
    _draw_integrity(integrity, report, days)
    return figure


def period_name(report: AudienceReport) -> str:
    """Return the period in words, in UTC: as days if it consists of whole days, otherwise as two times."""
    begin, end = _period(report)
    if begin == _midnight(begin) and end == _midnight(end) and begin < end:
        last = end - timedelta(days=1)
        count = (end - begin).days
        whole = f"{begin:%Y-%m-%d}" if count == 1 else f"{begin:%Y-%m-%d} to {last:%Y-%m-%d}, {count} days"
        return f"{whole} (UTC)"
    return f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} (UTC)"


def frequency_bars(report: AudienceReport) -> list[tuple[str, int]]:
    """Return the number of tokens by frequency; the last bar holds all higher frequencies."""
    tokens = {row.frequency: row.tokens for row in report.by_frequency}
    bars = [
        (str(frequency), tokens.get(frequency, 0))
        for frequency in range(1, min(_FREQUENCY_MAX, max(tokens, default=0)) + 1)
    ]
    above = sum(count for frequency, count in tokens.items() if frequency > _FREQUENCY_MAX)
    return [*bars, (f"over {_FREQUENCY_MAX}", above)] if above else bars


def _period(report: AudienceReport) -> tuple[datetime, datetime]:
    # The record has no name for this end: `from` is Python's.
    return parse_timestamp(str(report.period.document["from"])), report.period.to


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _days_of(report: AudienceReport) -> _Days:
    """Return the days of the period, extended by any other day that the report has a row for."""
    begin, end = _period(report)
    # The end is no part of the period: at midnight it is the day before.
    edges = [begin.date(), max(begin, end - timedelta(microseconds=1)).date()]
    named = [row.day for row in report.by_day] + [row.day for row in report.integrity_signals.by_day]
    edges += [date.fromisoformat(day) for day in named]
    first = min(edges)
    return _Days(tuple(first + timedelta(days=number) for number in range((max(edges) - first).days + 1)))


def _draw_days(axes: Axes, report: AudienceReport, days: _Days) -> None:
    is_empty = not report.events
    if not is_empty:
        events = days.spread({row.day: row.events for row in report.by_day})
        reach = days.spread({row.day: row.estimated_reach for row in report.by_day})
        axes.bar(days.numbers, events, color=_EVENTS, label="events")
        axes.plot(days.numbers, reach, color=_REACH, marker="o", ms=4, label="reach")
    axes.set_ylabel("a day (UTC)", color=_INK)
    _finish(axes, none="no events in this period" if is_empty else None)
    _finish_days(axes, days)


def _draw_frequencies(axes: Axes, report: AudienceReport) -> None:
    bars = frequency_bars(report)
    drawn = axes.bar([name for name, _ in bars], [count for _, count in bars], color=_REACH)
    axes.bar_label(drawn, [f"{count:,}" for _, count in bars], fontsize=8, color=_SOFT, padding=2)
    axes.set_ylabel("tokens", color=_INK)
    axes.set_xlabel("events of one token", color=_INK)
    _finish(axes, none=None if bars else "no events in this period")
    if not bars:
        axes.set_xticks([])


def _draw_integrity(axes: Axes, report: AudienceReport, days: _Days) -> None:
    rows = report.integrity_signals.by_day
    is_empty = not any(getattr(row, name) for row in rows for name, _, _ in _SIGNALS)
    below = [0] * len(days.days)
    for name, label, color in () if is_empty else _SIGNALS:
        counts: Sequence[int] = days.spread({row.day: getattr(row, name) for row in rows})
        axes.bar(days.numbers, counts, bottom=below, color=color, label=label)
        below = [one + other for one, other in zip(below, counts, strict=True)]
    axes.set_ylabel("not counted twice", color=_INK)
    _finish(axes, none="no replays in this period" if is_empty else None)
    _finish_days(axes, days)


def _finish(axes: Axes, *, none: str | None) -> None:
    """Draw the frame of a chart; an empty chart shows the text `none` and has no scale."""
    axes.set_facecolor("white")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if none is not None:
        axes.text(0.5, 0.5, none, transform=axes.transAxes, ha="center", va="center", color=_SOFT)
        axes.set_yticks([])
        return
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(axis="y", color="#e6e6e2", linewidth=0.8)
    axes.set_axisbelow(True)
    # Room above the highest bar, for the legend and the numbers.
    axes.set_ylim(0, axes.get_ylim()[1] * _HEADROOM)


def _finish_days(axes: Axes, days: _Days) -> None:
    first, last = days.numbers[0], days.numbers[-1]
    # A short period is centred in a week whose other days are unlabelled, as they are not part of it.
    spare = max(0.0, _DAYS_MIN - (last - first + 1)) / 2
    axes.set_xlim(first - spare - _HALF_A_DAY, last + spare + _HALF_A_DAY)
    if len(days.days) <= _DAYS_NAMED_MAX:
        axes.set_xticks(days.numbers, [f"{day:%d %b %Y}" for day in days.days])
    else:
        locator = AutoDateLocator(minticks=2, maxticks=10)  # type: ignore[no-untyped-call]  # as above
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]  # as above
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", frameon=False, ncols=3, fontsize=9)
