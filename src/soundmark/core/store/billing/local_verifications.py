"""The table `local_verifications`, which counts for all processes together."""

from datetime import datetime

from soundmark.kit.postgres.transaction import Tx


async def insert_or_count(tx: Tx, *, minute: datetime, limit: int) -> bool:
    """Count one verification in this minute; return False, and count nothing, if the limit is reached.

    Lock order: docs/locks.md.
    """
    counted = await tx.value(
        """
        INSERT INTO local_verifications AS v (minute, verification_count)
        SELECT %(minute)s, 1
         WHERE %(limit)s > 0
            ON CONFLICT ON CONSTRAINT local_verifications_pkey DO UPDATE
           SET verification_count = v.verification_count + 1
         WHERE v.verification_count < %(limit)s
        RETURNING verification_count
        """,
        {"minute": minute, "limit": limit},
    )
    return counted is not None


async def delete_before(tx: Tx, *, minute: datetime) -> int:
    """Delete the counts of earlier minutes; return their number."""
    return await tx.run("DELETE FROM local_verifications WHERE minute < %(minute)s", {"minute": minute})
