"""Deleting what is older than an integration keeps."""

from dataclasses import dataclass
from datetime import date
from typing import Final, LiteralString

from soundmark.kit.postgres import Tx


@dataclass(frozen=True, slots=True)
class AgedTable:
    """A table whose rows each belong to a day of an integration. Nothing finds them by day: they are walked."""

    name: str
    deleting: LiteralString


def _aged(name: LiteralString) -> AgedTable:
    # Some blocks of the table are read and no index, so that no row that is written has to keep one for it.
    return AgedTable(
        name,
        "DELETE FROM "  # noqa: S608 - the names are those of the tables below
        + name
        + """ AS kept
         USING integrations
         WHERE kept.ctid >= %(first)s::tid
           AND kept.ctid < %(end)s::tid
           AND integrations.number = kept.integration
           AND kept.day < %(today)s::date - integrations.retention_days
        """,
    )


AGED_TABLES: Final = (_aged("events"), _aged("event_ids"), _aged("spent_proofs"), _aged("integrity_days"))

_RETENTION_LOCK: Final = 2  # Kind of advisory lock: docs/locks.md.


async def hold(tx: Tx) -> None:
    """The daily retention deletes nothing until the transaction ends; other cuts go on. Lock order: docs/locks.md.

    Two that delete the same rows, one along the index and one along the table, would each wait for the other.
    """
    await tx.run("SELECT pg_advisory_xact_lock_shared(%(kind)s, 0)", {"kind": _RETENTION_LOCK})


async def lock(tx: Tx) -> None:
    """Nobody else deletes what has aged out until the transaction ends. Lock order: docs/locks.md."""
    await tx.run("SELECT pg_advisory_xact_lock(%(kind)s, 0)", {"kind": _RETENTION_LOCK})


async def count_blocks(tx: Tx, table: AgedTable) -> int:
    """How many blocks the table has on the disk."""
    count: int = await tx.value(
        "SELECT pg_relation_size(%(name)s::regclass) / current_setting('block_size')::bigint", {"name": table.name}
    )
    return count


async def delete_in_blocks(tx: Tx, table: AgedTable, *, first: int, end: int, today: date) -> int:
    """Delete what has aged out in the blocks from `first` up to `end`; how many rows it was."""
    params = {"first": f"({first},0)", "end": f"({end},0)", "today": today}
    return await tx.run(table.deleting, params)


async def find_day(tx: Tx, integration: int, *, after: date | None, before: date) -> date | None:
    """The first day behind `after` and before `before` of which the integration has events; None if none has."""
    # With `after`, what was deleted in this transaction is not gone through again.
    day: date | None = await tx.value(
        """
        SELECT min(day)
          FROM events
         WHERE integration = %(integration)s
           AND day > coalesce(%(after)s::date, '-infinity')
           AND day < %(before)s
        """,
        {"integration": integration, "after": after, "before": before},
    )
    return day


async def delete_events_of(tx: Tx, integration: int, *, day: date) -> int:
    """Delete the integration's events of one day; how many there were."""
    return await tx.run(
        "DELETE FROM events WHERE integration = %(integration)s AND day = %(day)s",
        {"integration": integration, "day": day},
    )


async def delete_integrity_days(tx: Tx, integration: int, *, before: date) -> int:
    """Delete the integration's counters of days before `before`; how many days there were."""
    return await tx.run(
        "DELETE FROM integrity_days WHERE integration = %(integration)s AND day < %(before)s",
        {"integration": integration, "before": before},
    )
