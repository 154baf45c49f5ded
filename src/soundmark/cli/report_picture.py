"""A picture of an Audience report: reach by day, how often, and what was not counted twice."""

from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from soundmark_sdk.client.records import AudienceReport

from soundmark.cli.intents import printable

_PAPER, _INK, _SOFT = "#fbfbf9", "#1d2125", "#5b636b"
_REACH, _EVENTS = "#8a2a6b", "#d9b8cd"
_SIGNALS: Final = (
    ("event_replays", "event replays", "#33658a"),
    ("code_token_duplicates", "Code and token again", "#e0a458"),
    ("proof_replays", "proof replays", "#b23a48"),
)
# Frequencies above it stand in one bar: a picture cannot tell hundreds of them apart.
_FREQUENCY_MAX: Final = 12
_HEADROOM: Final = 1.16
_DAYS_MIN: Final = 7
_HALF_A_DAY: Final = 0.5


def draw_report(report: AudienceReport, png_path: Path) -> None:
    """The picture of `report` is written to `png_path`, 1320 by 1080."""
    report_figure(report).savefig(png_path, format="png")


def report_figure(report: AudienceReport) -> Figure:
    """The picture: what was reached by day, how often, and what was not counted twice."""
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
    by_day.set_title(facts, loc="right", fontsize=10, color=_SOFT)
    _draw_days(by_day, report)
    _draw_frequencies(frequencies, report)
    _draw_integrity(integrity, report)
    return figure


def frequency_bars(report: AudienceReport) -> list[tuple[str, int]]:
    """How often, and how many tokens: each frequency up to the last bar, which holds all above it."""
    tokens = {row.frequency: row.tokens for row in report.by_frequency}
    bars = [
        (str(frequency), tokens.get(frequency, 0))
        for frequency in range(1, min(_FREQUENCY_MAX, max(tokens, default=0)) + 1)
    ]
    above = sum(count for frequency, count in tokens.items() if frequency > _FREQUENCY_MAX)
    return [*bars, (f"over {_FREQUENCY_MAX}", above)] if above else bars


def _draw_days(axes: Axes, report: AudienceReport) -> None:
    days = _days(row.day for row in report.by_day)
    axes.bar(days, [row.events for row in report.by_day], color=_EVENTS, label="events")
    axes.plot(days, [row.estimated_reach for row in report.by_day], color=_REACH, marker="o", ms=4, label="reach")
    axes.set_ylabel("a day (UTC)", color=_INK)
    _finish(axes, is_empty=not days)
    _finish_days(axes, report, is_empty=not days)


def _draw_frequencies(axes: Axes, report: AudienceReport) -> None:
    bars = frequency_bars(report)
    drawn = axes.bar([name for name, _ in bars], [count for _, count in bars], color=_REACH)
    axes.bar_label(drawn, [f"{count:,}" for _, count in bars], fontsize=8, color=_SOFT, padding=2)
    axes.set_ylabel("tokens", color=_INK)
    axes.set_xlabel("events of one token", color=_INK)
    _finish(axes, is_empty=not bars)


def _draw_integrity(axes: Axes, report: AudienceReport) -> None:
    rows = report.integrity_signals.by_day
    days = _days(row.day for row in rows)
    below = [0] * len(rows)
    for name, label, color in _SIGNALS:
        counts: Sequence[int] = [getattr(row, name) for row in rows]
        axes.bar(days, counts, bottom=below, color=color, label=label)
        below = [one + other for one, other in zip(below, counts, strict=True)]
    axes.set_ylabel("not counted twice", color=_INK)
    _finish(axes, is_empty=not rows)
    _finish_days(axes, report, is_empty=not rows)


def _days(texts: Iterable[str]) -> list[float]:
    """Days as the axis counts them."""
    numbers: list[float] = date2num([date.fromisoformat(text) for text in texts]).tolist()  # type: ignore[no-untyped-call]  # matplotlib's dates have no types
    return numbers


def _finish(axes: Axes, *, is_empty: bool) -> None:
    axes.set_facecolor("white")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(axis="y", color="#e6e6e2", linewidth=0.8)
    axes.set_axisbelow(True)
    # Room above the highest bar, for the legend and the numbers.
    axes.set_ylim(0, axes.get_ylim()[1] * _HEADROOM)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if is_empty:
        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center", color=_SOFT)
        axes.set_xticks([])


def _finish_days(axes: Axes, report: AudienceReport, *, is_empty: bool) -> None:
    if is_empty:
        return
    days = [*_days(row.day for row in report.by_day), *_days(row.day for row in report.integrity_signals.by_day)]
    # A week at least: below that, the axis would tell the hours of a day.
    axes.set_xlim(min(*days, max(days) - _DAYS_MIN + 1) - _HALF_A_DAY, max(days) + _HALF_A_DAY)
    locator = AutoDateLocator(minticks=2, maxticks=10)  # type: ignore[no-untyped-call]  # as above
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]  # as above
    axes.legend(loc="upper left", frameon=False, ncols=3, fontsize=9)
