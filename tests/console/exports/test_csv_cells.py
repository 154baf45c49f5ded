"""CSV that no spreadsheet runs as a formula."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.console.exports.documents import guard_cell, write_csv

STARTS = ["=", "+", "-", "@", "\t", "\r"]


def test_a_cell_that_looks_like_a_formula_becomes_text(subtests: pytest.Subtests) -> None:
    for start in STARTS:
        with subtests.test(start=start):
            cell = f'{start}HYPERLINK("https://attacker.example")'

            (row,) = csv.reader(io.StringIO(write_csv([("key", cell)]).decode(), newline=""))

            assert row == ["key", f"'{cell}"]


def test_any_other_cell_stays_as_it_is(subtests: pytest.Subtests) -> None:
    for cell in ["", "a=b", "1-2", "x@example.org", "0", " =1", "'=1", "2026-11-20"]:
        with subtests.test(cell=cell):
            assert guard_cell(cell) == cell


def test_the_rest_is_rfc_4180() -> None:
    assert write_csv([("a,b", 'say "so"'), ("two\r\nlines", "ü")]) == (
        '"a,b","say ""so"""\r\n"two\r\nlines",ü\r\n'.encode()
    )


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=4), max_size=5))
def test_any_rows_can_be_read_again(rows: list[list[str]]) -> None:
    read = list(csv.reader(io.StringIO(write_csv(rows).decode(), newline="")))

    assert read == [[guard_cell(cell) for cell in row] for row in rows]
    assert not any(cell.startswith(tuple(STARTS)) for row in read for cell in row)
