"""The geometry of charts."""

import json
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.console.charts import HEIGHT, WIDTH, draw_columns, list_days, measure_share

DAY = date(2026, 11, 20)
columns = st.lists(
    st.tuples(st.integers(0, 9), st.fixed_dictionaries({"a": st.integers(0, 10**9), "b": st.integers(0, 10**9)})),
    min_size=1,
    max_size=40,
)


@given(columns, st.booleans())
def test_every_bar_lies_inside_the_picture(drawn: list[tuple[int, dict[str, int]]], is_stacked: bool) -> None:
    chart = draw_columns(drawn, is_stacked=is_stacked)

    if chart is None:
        assert not any(value for _, column in drawn for value in column.values())
        return
    assert len(chart.bars) == sum(bool(value) for _, column in drawn for value in column.values())
    for bar in chart.bars:
        assert 0 <= bar.x <= bar.x + bar.width <= WIDTH
        assert 0 <= bar.y <= bar.y + bar.height <= HEIGHT
    assert chart.scale[0].value == 0
    assert len(chart.scale) <= 6
    assert len(chart.labels) <= 6


def test_columns_have_heights_in_proportion() -> None:
    chart = draw_columns([("one", {"events": 10}), ("two", {"events": 5})], is_stacked=False)

    assert chart is not None
    first, second = chart.bars
    assert first.height == pytest.approx(2 * second.height)
    assert first.y + first.height == second.y + second.height
    assert first.x < second.x


def test_stacked_series_stand_on_each_other() -> None:
    chart = draw_columns([("one", {"a": 2, "b": 3})], is_stacked=True)

    assert chart is not None
    lower, upper = chart.bars
    assert upper.y + upper.height == pytest.approx(lower.y)
    assert list(chart.paths) == ["a", "b"]


def test_a_series_inside_another_stands_on_the_same_line() -> None:
    chart = draw_columns([("one", {"events": 4, "estimated_reach": 1})], is_stacked=False)

    assert chart is not None
    outer, inner = chart.bars
    assert outer.y + outer.height == pytest.approx(inner.y + inner.height)
    assert inner.height < outer.height
    assert outer.x < inner.x < inner.x + inner.width < outer.x + outer.width


def test_the_bars_of_a_series_are_one_path() -> None:
    chart = draw_columns([("one", {"events": 4}), ("two", {"events": 2})], is_stacked=False)

    assert chart is not None
    assert chart.paths == {
        "events": "".join(f"M{bar.x:g} {bar.y:g}h{bar.width:g}v{bar.height:g}h-{bar.width:g}z" for bar in chart.bars)
    }


def test_a_script_gets_the_values_of_every_column_in_the_order_of_the_series() -> None:
    columns = [(DAY, {"events": 4, "estimated_reach": 1}), ("> 12", {}), (3, {"events": 2})]
    chart = draw_columns(columns, is_stacked=False)

    assert chart is not None
    assert chart.series == ("events", "estimated_reach")
    assert json.loads(chart.values) == [["2026-11-20", 4, 1], ["> 12", 0, 0], [3, 2, 0]]


def test_days_without_a_row_are_shown() -> None:
    assert list_days(DAY, DAY + timedelta(days=3), [DAY + timedelta(days=1)]) == [
        DAY + timedelta(days=number) for number in range(4)
    ]


def test_a_period_as_long_as_the_calendar_shows_the_days_that_have_rows() -> None:
    assert list_days(date.min, date.max, [DAY, DAY + timedelta(days=2)]) == [
        DAY + timedelta(days=number) for number in range(3)
    ]
    assert list_days(date.min, date.max, []) == []


def test_a_share_is_seen_unless_it_is_nothing(subtests: pytest.Subtests) -> None:
    for value, whole, share in [(0, 10, 0), (5, 10, 50), (10, 10, 100), (30, 10, 100), (1, 10**6, 0.5), (3, 0, 0)]:
        with subtests.test(value=value, whole=whole, share=share):
            assert measure_share(value, whole) == share
