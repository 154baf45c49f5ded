"""Rows in pages, from a cursor of the server."""

from contextlib import aclosing
from dataclasses import dataclass

import psycopg
import pytest

from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx

NUMBERS = "SELECT n FROM generate_series(1, %(count)s) AS n"


@dataclass(frozen=True)
class Number:
    """A row of `NUMBERS`."""

    n: int


async def count_cursors(tx: Tx) -> int:
    count: int = await tx.value("SELECT count(*) FROM pg_cursors WHERE name <> ''")
    return count


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])], ids=str
)
async def test_every_row_comes_once_and_in_order(db: Database, count: int, sizes: list[int]) -> None:
    async with db.snapshot() as tx:
        pages = [page async for page in tx.pages(Number, NUMBERS, {"count": count}, rows_max=3)]
        assert await count_cursors(tx) == 0
    assert [len(page) for page in pages] == sizes
    assert [row.n for page in pages for row in page] == list(range(1, count + 1))


async def test_other_statements_run_between_two_pages(db: Database) -> None:
    """Also those of another list."""
    seen = []
    async with (
        db.snapshot() as tx,
        aclosing(tx.pages(Number, NUMBERS, {"count": 4}, rows_max=2)) as pages,
        aclosing(tx.pages(Number, NUMBERS, {"count": 2}, rows_max=1)) as others,
    ):
        async for page in pages:
            other = await anext(others)
            seen.append(([row.n for row in page], other[0].n, await tx.value("SELECT 7")))
    assert seen == [([1, 2], 1, 7), ([3, 4], 2, 7)]


async def test_a_list_that_is_left_early_holds_nothing(db: Database) -> None:
    async with db.snapshot() as tx:
        async with aclosing(tx.pages(Number, NUMBERS, {"count": 9}, rows_max=2)) as pages:
            assert [row.n for row in await anext(pages)] == [1, 2]
            assert await count_cursors(tx) == 1
        assert await count_cursors(tx) == 0


async def test_a_failure_between_two_pages_is_raised_as_it_is(db: Database) -> None:
    """The connection is sound afterwards."""

    async def fail() -> None:
        async with db.snapshot() as tx, aclosing(tx.pages(Number, NUMBERS, {"count": 9}, rows_max=2)) as pages:
            async for _ in pages:
                await tx.value("SELECT 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        await fail()
    async with db.snapshot() as tx:
        assert await tx.value("SELECT 1") == 1
