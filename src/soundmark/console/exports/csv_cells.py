"""CSV that a spreadsheet shows as text and numbers, never as formulas."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

# A spreadsheet takes a cell for a formula if it begins with one of these.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def write_csv(rows: Iterable[Sequence[str]]) -> bytes:
    """Return rows as CSV (RFC 4180, UTF-8); an apostrophe marks as text what could be taken for a formula.

    Source: contract, section 10.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows([guard_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def guard_cell(cell: str) -> str:
    """Return the cell, with a leading apostrophe if it could be taken for a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell
