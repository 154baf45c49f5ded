"""The table `log_checkpoints`."""

from dataclasses import asdict
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.log.state import StoredCheckpoint
from soundmark.kit.postgres.transaction import Tx

_SELECT: Final[LiteralString] = """
    SELECT size, root, note, cosignatures, signed_at, asked_at, published_at
      FROM log_checkpoints
"""


async def insert(tx: Tx, checkpoint: StoredCheckpoint) -> None:
    """Insert a checkpoint. That there is another of the same size is an error."""
    await tx.run(
        """
        INSERT INTO log_checkpoints (size, root, note, cosignatures, signed_at, asked_at, published_at)
        VALUES (%(size)s, %(root)s, %(note)s, %(cosignatures)s, %(signed_at)s, %(asked_at)s, %(published_at)s)
        """,
        asdict(checkpoint),
    )


async def find_newest(tx: Tx) -> StoredCheckpoint | None:
    """Return the newest checkpoint, published or not."""
    return await tx.one_or_none(StoredCheckpoint, _SELECT + " ORDER BY size DESC LIMIT 1")


async def find_published(tx: Tx) -> StoredCheckpoint | None:
    """Return the newest checkpoint that is published; None before Core's first start."""
    return await tx.one_or_none(
        StoredCheckpoint, _SELECT + " WHERE published_at IS NOT NULL ORDER BY size DESC LIMIT 1"
    )


async def find(tx: Tx, size: int) -> StoredCheckpoint | None:
    """Return the checkpoint of this size; None if it is gone, because a newer one was published."""
    return await tx.one_or_none(StoredCheckpoint, _SELECT + " WHERE size = %(size)s", {"size": size})


async def update_asked(tx: Tx, size: int, *, now: datetime) -> None:
    """Note when a worker began to ask the witnesses about a checkpoint."""
    await tx.run("UPDATE log_checkpoints SET asked_at = %(now)s WHERE size = %(size)s", {"size": size, "now": now})


async def update_cosigned(tx: Tx, size: int, cosignatures: str, *, published_at: datetime | None) -> None:
    """Store the witnesses' lines of a checkpoint, and when it was published."""
    await tx.run(
        """
        UPDATE log_checkpoints
           SET cosignatures = %(cosignatures)s,
               published_at = %(published_at)s
         WHERE size = %(size)s
        """,
        {"size": size, "cosignatures": cosignatures, "published_at": published_at},
    )


async def delete_older(tx: Tx, *, than: int) -> None:
    """Delete the checkpoints of smaller trees, once this size is published."""
    await tx.run("DELETE FROM log_checkpoints WHERE size < %(than)s", {"than": than})
