"""Another master key for everything that the database keeps sealed."""

from collections.abc import Sequence
from dataclasses import dataclass

from soundmark.core.store import sealed_values
from soundmark.core.store.sealed_values import SEALED_COLUMNS, SealedColumn, SealedValue
from soundmark.kit.postgres import EVERY_TENANT, Database
from soundmark.kit.sealing import SealBroken, Sealer


class ResealRefused(Exception):  # noqa: N818 - named for what was found
    """A value opens under none of the keys; nothing was changed. The message names it and holds no secret."""


@dataclass(frozen=True, slots=True)
class Resealed:
    """How many values were moved to the new key, and how many were under it already."""

    moved_count: int
    already_count: int


async def reseal(db: Database, *, old: Sequence[Sealer], new: Sealer) -> Resealed:
    """Every sealed value of every tenant opens under `new` and under no other key; or nothing was changed.

    Repeating it is safe and is what to do after an interruption, and once more when every process has the new key: it
    moves what processes with the old one sealed meanwhile, and passes over what opens under the new one.

    Raises: ResealRefused where a value opens neither under `new` nor under one of `old`; DatabaseUnavailable.
    """
    moved_count = already_count = 0
    async with db.transaction(tenant=EVERY_TENANT) as tx:
        # Whoever seals meanwhile waits for our commit, so that no value appears behind our back in what we listed.
        await sealed_values.lock_all(tx)
        for column in SEALED_COLUMNS:
            values = await sealed_values.list_all(tx, column)
            moved = [
                SealedValue(value.organization_id, value.row, _sealed(new, _opened(old, column, value), column, value))
                for value in values
                if not _opens(new, column, value)
            ]
            await sealed_values.replace_all(tx, column, moved)
            moved_count += len(moved)
            already_count += len(values) - len(moved)
    return Resealed(moved_count, already_count)


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
