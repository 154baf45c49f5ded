"""The table `log_queue`: entries that are not in the tree yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from soundmark.kit.postgres.arrays import bytes_array
from soundmark.kit.postgres.transaction import AnyTx, Tx


@dataclass(frozen=True, slots=True)
class Queued:
    """Something that waits: one entry, or the commitments of `count` Codes, all in `content`."""

    kind: Literal["entry", "code.issued", "code.revoked"]
    count: int
    content: bytes


async def insert(tx: AnyTx, entries: Sequence[bytes]) -> None:
    """Insert entries, which enter the log when the transaction commits, and wake the worker."""
    await tx.run(
        """
        WITH queued AS (
            INSERT INTO log_queue (content)
            SELECT unnest(%(entries)s::bytea[])
        )
        SELECT pg_notify('log_queue', '')
        """,
        {"entries": bytes_array(entries)},
    )


async def notify(tx: Tx) -> None:
    """Wake the worker when the transaction commits.

    What issues and revokes Codes does not: a transaction that notifies holds a lock until its commit, so they would
    wait for each other. This transaction changes nothing else, and its commit waits for no disk or standby.
    """
    await tx.value("SELECT set_config('synchronous_commit', 'off', true), pg_notify('log_queue', '')")


async def delete_oldest(tx: Tx, *, limit: int) -> list[Queued]:
    """Delete and return what waits, the oldest rows first, until they have `limit` entries or more."""
    rows = await tx.rows(
        """
        WITH oldest AS (
            SELECT id, count
              FROM log_queue
             ORDER BY id
             LIMIT %(limit)s
        ), summed AS (
            SELECT id, sum(count) OVER (ORDER BY id) - count AS before
              FROM oldest
        )
        DELETE FROM log_queue
         USING summed
         WHERE log_queue.id = summed.id
           AND summed.before < %(limit)s
        RETURNING kind, count, content
        """,
        {"limit": limit},
    )
    return [Queued(*row) for row in rows]


async def count(tx: Tx) -> int:
    """Return the number of entries."""
    waiting: int = await tx.value("SELECT COALESCE(sum(count), 0)::bigint FROM log_queue")
    return waiting
