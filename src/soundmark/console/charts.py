"""The geometry of charts, which templates draw as SVG with a table behind it, and the forecast of a month."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 264
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 8, 32, 52  # Room for the scale, the labels and the titles of both axes.
_GRID_LINES: Final = 4
_LABELS_MAX: Final = 6
_BAR_SHARE: Final = 0.8
_BAR_WIDTH_MAX: Final = 48
# A bar inside another is narrower, so that both are seen where they are equally high.
_INNER_SHARE: Final = 0.55
# No report has events outside the longest retention; a period may be as long as the calendar.
_DAYS_MAX: Final = 731
# The first hours of a month say nothing about the rest of it.
_FORECAST_AFTER: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. `series` is its name in the style sheet and in the legend."""

    series: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ScaleLine:
    """A line of the vertical scale."""

    y: float
    value: int


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """What a place on the horizontal axis stands for."""

    x: float
    text: str | int | date


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars over a horizontal axis, in units of the view box (`WIDTH` by `HEIGHT`)."""

    bars: tuple[Bar, ...]
    scale: tuple[ScaleLine, ...]
    labels: tuple[AxisLabel, ...]
    columns: tuple[tuple[str | int | date, "Column"], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT

    @property
    def series(self) -> tuple[str, ...]:
        """The names of the series that have a bar, in the order in which they are drawn."""
        return tuple(dict.fromkeys(bar.series for bar in self.bars))

    @property
    def values(self) -> str:
        """The columns for a script, as JSON: the text, or day, of each, and its values in the order of `series`."""
        return json.dumps(
            [
                [text.isoformat() if isinstance(text, date) else text, *(column.get(name, 0) for name in self.series)]
                for text, column in self.columns
            ],
            separators=(",", ":"),
        )

    @property
    def paths(self) -> dict[str, str]:
        """The bars of each series as the data of one SVG path: two years of days would be a thousand elements."""
        paths: dict[str, list[str]] = {}
        for bar in self.bars:
            drawn = f"M{bar.x:g} {bar.y:g}h{bar.width:g}v{bar.height:g}h-{bar.width:g}z"
            paths.setdefault(bar.series, []).append(drawn)
        return {series: "".join(drawn) for series, drawn in paths.items()}


Column = Mapping[str, int]  # The value of each series in one column.


def draw_columns(columns: Sequence[tuple[str | int | date, Column]], *, is_stacked: bool) -> Chart | None:
    """Return a chart with a column for each entry; None without a value to show.

    The series of a column stand on each other if `is_stacked`; otherwise each is drawn inside the one before, which it
    must not exceed, such as the reach inside the events.
    """
    highest = max((_height_of(column, is_stacked=is_stacked) for _, column in columns), default=0)
    if not highest:
        return None
    step = _round_up(-(-highest // _GRID_LINES))
    top = step * -(-highest // step)
    room = (WIDTH - _LEFT - _RIGHT) / len(columns)
    width = min(room * _BAR_SHARE, _BAR_WIDTH_MAX)
    bars: list[Bar] = []
    for number, (_, column) in enumerate(columns):
        below, wide = 0, width
        for series, value in column.items():
            if value:
                y = _y_of(below + value, top)
                x = _LEFT + (number + 0.5) * room - wide / 2
                bars.append(Bar(series, round(x, 1), y, round(wide, 1), round(_y_of(below, top) - y, 1)))
            if is_stacked:
                below += value
            else:
                wide *= _INNER_SHARE
    scale = tuple(ScaleLine(_y_of(value, top), value) for value in range(0, top + 1, step))
    every = -(-len(columns) // _LABELS_MAX)
    labels = tuple(
        AxisLabel(round(_LEFT + (number + 0.5) * room, 1), text)
        for number, (text, _) in enumerate(columns)
        if number % every == 0
    )
    return Chart(tuple(bars), scale, labels, tuple(columns))


def list_days(first: date, last: date, named: Sequence[date]) -> list[date]:
    """Return the days of a period and of all rows; for a very long period, only from the first row to the last."""
    if (last - first).days >= _DAYS_MAX:
        if not named:
            return []
        first, last = min(named), max(named)
    else:
        first, last = min([first, *named]), max([last, *named])
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def forecast_month(issued: int, now: datetime) -> int | None:
    """Return how many Codes will have been issued at the end of the month (UTC) at its pace so far; None too early."""
    begin = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    end = (begin + timedelta(days=32)).replace(day=1)
    return round(issued * ((end - begin) / (now - begin))) if now - begin >= _FORECAST_AFTER else None


def measure_share(value: int, whole: int) -> float:
    """Return the width of a bar in per cent of the whole, wide enough to be seen unless the value is 0."""
    if not value or not whole:
        return 0.0
    return round(max(0.5, min(100.0, 100 * value / whole)), 2)


def _height_of(column: Column, *, is_stacked: bool) -> int:
    return sum(column.values()) if is_stacked else max(column.values(), default=0)


def _y_of(value: int, top: int) -> float:
    return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - value / top), 1)


def _round_up(step: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50 and so on."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= step:
                return factor * power
        power *= 10
