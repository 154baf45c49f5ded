"""Rotating the master key under which a database's values are sealed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import LiteralString

from soundmark.kit.crypto.sealing import SealBroken, Sealer
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx


class ResealRefused(Exception):
    """A value opens under none of the keys, and nothing was changed. The message names it, without secrets."""


@dataclass(frozen=True, slots=True)
class Resealed:
    """The number of values that were moved to the new key, and of those that were already sealed under it."""

    moved_count: int
    already_count: int


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """One column of sealed values, and the statements that list and replace them."""

    table: str
    column: str
    listing: LiteralString
    replacing: LiteralString


@dataclass(frozen=True, slots=True)
class SealedValue:
    """One value, sealed for its `row`; `organization_id` is empty if it belongs to no tenant."""

    organization_id: str
    row: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SealedColumns:
    """Every sealed column of one database.

    `lock` is a statement that keeps everybody else from changing a sealed value, or locking its row, until the
    transaction ends (docs/locks.md). `tenant` is the tenant of the transaction, so that it sees every row.
    """

    columns: Sequence[SealedColumn]
    lock: LiteralString
    tenant: str | None = None


async def reseal(db: Database, sealed: SealedColumns, *, old: Sequence[Sealer], new: Sealer) -> Resealed:
    """Seal every value of every tenant under `new` and no other key, or change nothing.

    Repeating it is safe: it skips values that open under the new key. Repeat it after an interruption, and once more
    when every process has the new key, to move the values that were sealed under the old key in the meantime.

    Raises: ResealRefused if a value opens neither under `new` nor under one of `old`; DatabaseUnavailable.
    """
    moved_count = already_count = 0
    async with db.transaction(tenant=sealed.tenant) as tx:
        # Everybody who seals waits for our commit, so that no value is added while we work through the list.
        await tx.run(sealed.lock)
        for column in sealed.columns:
            values = await _list(tx, column)
            moved = [
                SealedValue(value.organization_id, value.row, _seal(new, _unseal(old, column, value), column, value))
                for value in values
                if not _opens(new, column, value)
            ]
            await _replace(tx, column, moved)
            moved_count += len(moved)
            already_count += len(values) - len(moved)
    return Resealed(moved_count, already_count)


async def require_openable(db: Database, sealed: SealedColumns, sealers: Sequence[Sealer]) -> None:
    """Check that every sealed value opens under one of `sealers`, so that it can be moved.

    Raises: ResealRefused; DatabaseUnavailable.
    """
    async with db.snapshot(tenant=sealed.tenant) as tx:
        for column in sealed.columns:
            for value in await _list(tx, column):
                _unseal(sealers, column, value)


async def _list(tx: Tx, column: SealedColumn) -> list[SealedValue]:
    return await tx.all(SealedValue, column.listing)


async def _replace(tx: Tx, column: SealedColumn, values: Sequence[SealedValue]) -> None:
    if values:
        rows = [{"organization_id": one.organization_id, "row": one.row, "sealed": one.sealed} for one in values]
        await tx.run_many(column.replacing, rows)


def _opens(sealer: Sealer, column: SealedColumn, value: SealedValue) -> bool:
    try:
        sealer.unseal(value.sealed, table=column.table, column=column.column, row=value.row)
    except SealBroken:
        return False
    return True


def _unseal(sealers: Sequence[Sealer], column: SealedColumn, value: SealedValue) -> bytes:
    for sealer in sealers:
        if _opens(sealer, column, value):
            return sealer.unseal(value.sealed, table=column.table, column=column.column, row=value.row)
    raise ResealRefused(
        f"{column.table}.{column.column} of {value.row} opens neither under the old key nor the new one"
    )


def _seal(sealer: Sealer, plaintext: bytes, column: SealedColumn, value: SealedValue) -> bytes:
    return sealer.seal(plaintext, table=column.table, column=column.column, row=value.row)
