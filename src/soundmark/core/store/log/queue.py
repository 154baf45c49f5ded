"""The table `log_queue`: entries that are not in the tree yet."""

from collections.abc import Sequence

from soundmark.kit.postgres.arrays import bytes_array
from soundmark.kit.postgres.transaction import AnyTx, Tx


async def insert(tx: AnyTx, entries: Sequence[bytes]) -> None:
    """Insert entries, which enter the log when the transaction commits."""
    await tx.run("INSERT INTO log_queue (entry) SELECT unnest(%(entries)s::bytea[])", {"entries": bytes_array(entries)})


async def delete_oldest(tx: Tx, *, limit: int) -> list[bytes]:
    """Delete and return up to `limit` entries, the oldest first."""
    rows = await tx.rows(
        """
        WITH oldest AS (
            SELECT id
              FROM log_queue
             ORDER BY id
             LIMIT %(limit)s
        )
        DELETE FROM log_queue
         USING oldest
         WHERE log_queue.id = oldest.id
        RETURNING log_queue.entry
        """,
        {"limit": limit},
    )
    return [row[0] for row in rows]


async def count(tx: Tx) -> int:
    """Return the number of entries."""
    waiting: int = await tx.value("SELECT count(*) FROM log_queue")
    return waiting
