"""The table `local_verifications`, which counts for all processes together."""

from datetime import datetime

from soundmark.core.domain.billing.local_limit import VerificationShare
from soundmark.kit.postgres.transaction import Tx


async def insert_or_count(tx: Tx, share: VerificationShare, *, minute: datetime, limit: int) -> bool:
    """Count one verification of a share in this minute; return False, and count nothing, if its limit is reached.

    Lock order: docs/locks.md.
    """
    counted = await tx.value(
        """
        INSERT INTO local_verifications AS v (minute, share, verification_count)
        SELECT %(minute)s, %(share)s, 1
         WHERE %(limit)s > 0
            ON CONFLICT ON CONSTRAINT local_verifications_pkey DO UPDATE
           SET verification_count = v.verification_count + 1
         WHERE v.verification_count < %(limit)s
        RETURNING verification_count
        """,
        {"minute": minute, "share": share, "limit": limit},
    )
    return counted is not None


async def update_uncounted(tx: Tx, share: VerificationShare, *, minute: datetime) -> None:
    """Take back what this transaction has counted."""
    await tx.run(
        """
        UPDATE local_verifications
           SET verification_count = verification_count - 1
         WHERE minute = %(minute)s
           AND share = %(share)s
        """,
        {"minute": minute, "share": share},
    )


async def delete_before(tx: Tx, *, minute: datetime) -> int:
    """Delete the counts of earlier minutes; return their number."""
    return await tx.run("DELETE FROM local_verifications WHERE minute < %(minute)s", {"minute": minute})
