"""Deleting what is older than its integration keeps."""

from typing import Final

from soundmark.audience.context import WorkContext
from soundmark.audience.store import retention
from soundmark.audience.store.retention import AGED_TABLES

_BLOCKS_AT_ONCE: Final = 256  # Two megabytes, some 30,000 rows: no transaction is long, and nobody waits for one.


async def forget_aged(ctx: WorkContext) -> dict[str, int]:
    """What belongs to days that are not kept any more is gone; how many rows of each table it was.

    Each table is walked once from its beginning to the end that it had then, in steps of their own. Row by row nobody
    waits for it: those who record events write other rows, and what is deleted no report shows any more. Safe at any
    time, at once with itself, and after it was interrupted.

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
