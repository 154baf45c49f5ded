"""Deleting data that is older than its integration's retention."""

from typing import Final

from soundmark.audience.context import WorkContext
from soundmark.audience.store import retention
from soundmark.audience.store.retention import AGED_TABLES

_BLOCKS_AT_ONCE: Final = 256  # Two megabytes, some 30,000 rows, so that every transaction is short.


async def forget_aged(ctx: WorkContext) -> dict[str, int]:
    """Delete the rows of days that are no longer kept; return how many rows of each table were deleted.

    Each table is walked once, to the end that it had at the beginning, with one transaction for each step. Nobody waits
    for these deletions: new events are other rows, and no report shows the deleted ones. It is safe at any time, twice
    at once, and after an interruption.

    Raises: DatabaseUnavailable.
    Source: API v1, "Limits", Audience retention.
    """
    today = ctx.clock.now().date()
    deleted = {}
    for table in AGED_TABLES:
        deleted[table.name] = 0
        async with ctx.db.transaction() as tx:
            blocks_count = await retention.count_blocks(tx, table)
        for first in range(0, blocks_count, _BLOCKS_AT_ONCE):
            async with ctx.db.transaction() as tx:
                await retention.lock(tx)
                end = first + _BLOCKS_AT_ONCE
                deleted[table.name] += await retention.delete_in_blocks(tx, table, first=first, end=end, today=today)
    return deleted
