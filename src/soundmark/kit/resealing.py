"""Another master key for everything that a database keeps sealed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import LiteralString

from soundmark.kit.postgres import Database, Tx
from soundmark.kit.sealing import SealBroken, Sealer


class ResealRefused(Exception):  # noqa: N818 - named for what was found
    """A value opens under none of the keys; nothing was changed. The message names it and holds no secret."""


@dataclass(frozen=True, slots=True)
class Resealed:
    """How many values were moved to the new key, and how many were under it already."""

    moved_count: int
    already_count: int


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """Where sealed values are, and how they are read and replaced there."""

    table: str
    column: str
    listing: LiteralString
    replacing: LiteralString


@dataclass(frozen=True, slots=True)
class SealedValue:
    """One value: `row` is what it is sealed to, `organization_id` empty where it is no tenant's."""

    organization_id: str
    row: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Vault:
    """Everything that one database keeps sealed. `lock` keeps all others from changing any of it.

    `tenant` is who the transaction is for, so that it sees every row.
    """

    db: Database
    columns: Sequence[SealedColumn]
    lock: Callable[[Tx], Awaitable[None]]
    tenant: str | None = None


async def reseal(vault: Vault, *, old: Sequence[Sealer], new: Sealer) -> Resealed:
    """Every sealed value of every tenant opens under `new` and under no other key; or nothing was changed.

    Repeating it is safe and is what to do after an interruption, and once more when every process has the new key: it
    moves what processes with the old one sealed meanwhile, and passes over what opens under the new one.

    Raises: ResealRefused where a value opens neither under `new` nor under one of `old`; DatabaseUnavailable.
    """
    moved_count = already_count = 0
    async with vault.db.transaction(tenant=vault.tenant) as tx:
        # Whoever seals meanwhile waits for our commit, so that no value appears behind our back in what we listed.
        await vault.lock(tx)
        for column in vault.columns:
            values = await _list(tx, column)
            moved = [
                SealedValue(value.organization_id, value.row, _sealed(new, _opened(old, column, value), column, value))
                for value in values
                if not _opens(new, column, value)
            ]
            await _replace(tx, column, moved)
            moved_count += len(moved)
            already_count += len(values) - len(moved)
    return Resealed(moved_count, already_count)


async def require_openable(vault: Vault, sealers: Sequence[Sealer]) -> None:
    """Every sealed value opens under one of `sealers`: what is to be moved together with others can be moved.

    Raises: ResealRefused; DatabaseUnavailable.
    """
    async with vault.db.snapshot(tenant=vault.tenant) as tx:
        for column in vault.columns:
            for value in await _list(tx, column):
                _opened(sealers, column, value)


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


def _opened(sealers: Sequence[Sealer], column: SealedColumn, value: SealedValue) -> bytes:
    for sealer in sealers:
        if _opens(sealer, column, value):
            return sealer.unseal(value.sealed, table=column.table, column=column.column, row=value.row)
    raise ResealRefused(
        f"{column.table}.{column.column} of {value.row} opens neither under the old key nor the new one"
    )


def _sealed(sealer: Sealer, plaintext: bytes, column: SealedColumn, value: SealedValue) -> bytes:
    return sealer.seal(plaintext, table=column.table, column=column.column, row=value.row)
