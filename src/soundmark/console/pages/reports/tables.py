"""The tables of a report: every dimension, with bars that compare its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from soundmark_sdk.client.records import AudienceReport

from soundmark.console.charts import measure_share
from soundmark.console.exports.reconciliation import DIMENSIONS

# Of each dimension on a page, which would take long to load otherwise. A person may ask for all rows of one dimension.
ROWS_MAX: Final = 50
_DRAWN: Final = frozenset({"by_day", "by_frequency"})


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: its key, its numbers, and the share of its first number in the largest of the table, in per cent."""

    key: str | int | None
    numbers: Mapping[str, int]
    share: float


@dataclass(frozen=True, slots=True)
class DimensionTable:
    """One dimension of a report. `count` is the number of all rows, of which `rows` may be a part."""

    dimension: str
    key: str
    metrics: tuple[str, ...]
    rows: tuple[TableRow, ...]
    count: int

    @property
    def is_drawn(self) -> bool:
        """Whether a chart shows the same numbers, so that the rows need no bars."""
        return self.dimension in _DRAWN


def list_tables(report: AudienceReport, *, whole: str | None) -> list[DimensionTable]:
    """Return a table for each dimension: the one named `whole` with all rows, the others with at most `ROWS_MAX`."""
    return [
        _make_table(dimension, key, report.document[dimension], has_all_rows=dimension == whole)
        for dimension, key in DIMENSIONS
    ]


def _make_table(
    dimension: str, key: str, documents: Sequence[Mapping[str, Any]], *, has_all_rows: bool
) -> DimensionTable:
    # Days ascend, so the latest are last; the other dimensions begin with the most events, which frequencies need not.
    if dimension == "by_frequency":
        documents = sorted(documents, key=lambda row: int(row[key]))
    shown = documents if has_all_rows else documents[-ROWS_MAX:] if dimension == "by_day" else documents[:ROWS_MAX]
    metrics = tuple(name for name in ("events", "tokens", "estimated_reach") if documents and name in documents[0])
    largest = max((row[metrics[0]] for row in documents), default=0) if metrics else 0
    rows = tuple(
        TableRow(row[key], {name: row[name] for name in metrics}, measure_share(row[metrics[0]], largest))
        for row in shown
    )
    return DimensionTable(dimension, key, metrics, rows, len(documents))
