"""Rows that are older than their integration's retention."""

from dataclasses import dataclass
from datetime import date
from typing import Final, LiteralString

from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class AgedTable:
    """A table whose rows belong to a day of an integration. It has no index by day, so its blocks are walked."""

    name: str
    finding_last: LiteralString
    deleting: LiteralString


def _aged_table(name: LiteralString) -> AgedTable:
    # It reads blocks of the table, because an index by day would slow down every insert.
    return AgedTable(
        name,
        "SELECT (max(kept.ctid)::text::point)[0]::bigint FROM " + name + " AS kept",
        "DELETE FROM "
        + name
        + """ AS kept
         USING integrations
         WHERE kept.ctid >= %(first)s::tid
           AND kept.ctid < %(end)s::tid
           AND integrations.number = kept.integration
           AND kept.day < %(today)s::date - integrations.retention_days
        """,
    )


AGED_TABLES: Final = (
    _aged_table("events"),
    _aged_table("event_ids"),
    _aged_table("spent_proofs"),
    _aged_table("integrity_days"),
)

_RETENTION_LOCK: Final = 2  # Kind of advisory lock: docs/locks.md.


async def hold(tx: Tx) -> None:
    """Keep the daily retention from deleting until the transaction ends. Lock order: docs/locks.md.

    Otherwise two transactions could deadlock that delete the same rows, one in the order of the index, the other in
    that of the table. Several integrations may change their retention at once.
    """
    await tx.run("SELECT pg_advisory_xact_lock_shared(%(kind)s, 0)", {"kind": _RETENTION_LOCK})


async def lock(tx: Tx) -> None:
    """Keep everybody else from deleting old rows until the transaction ends. Lock order: docs/locks.md."""
    await tx.run("SELECT pg_advisory_xact_lock(%(kind)s, 0)", {"kind": _RETENTION_LOCK})


async def count_blocks(tx: Tx, table: AgedTable) -> int:
    """Return how many blocks the table has.

    The server that answers may have no file of a table that is distributed. An empty file is therefore no proof of an
    empty table: its last row is found, by reading all of it.
    """
    count: int = await tx.value(
        "SELECT pg_relation_size(%(name)s::regclass) / current_setting('block_size')::bigint", {"name": table.name}
    )
    if count:
        return count
    last: int | None = await tx.value(table.finding_last)
    return 0 if last is None else last + 1


async def delete_in_blocks(tx: Tx, table: AgedTable, *, first: int, end: int, today: date) -> int:
    """Delete the old rows in the blocks from `first`, inclusive, to `end`, exclusive; return their number."""
    params = {"first": f"({first},0)", "end": f"({end},0)", "today": today}
    return await tx.run(table.deleting, params)


async def find_day(tx: Tx, integration: int, *, after: date | None, before: date) -> date | None:
    """Return the first day after `after` and before `before` on which the integration has events."""
    # `after` skips the rows that this transaction has deleted.
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
    """Delete the integration's events of one day; return their number."""
    return await tx.run(
        "DELETE FROM events WHERE integration = %(integration)s AND day = %(day)s",
        {"integration": integration, "day": day},
    )


async def delete_integrity_days(tx: Tx, integration: int, *, before: date) -> int:
    """Delete the integration's counters of days before `before`; return the number of days."""
    return await tx.run(
        "DELETE FROM integrity_days WHERE integration = %(integration)s AND day < %(before)s",
        {"integration": integration, "before": before},
    )
