"""The table `desk_deliveries`: the digests of the deliveries that were taken from the support desk."""

from datetime import datetime

from soundmark.kit.postgres.transaction import Tx


async def insert_if_new(tx: Tx, digest: bytes, *, now: datetime) -> bool:
    """Record a delivery; return whether it is the first of this digest.

    Of two transactions with the same delivery, the second waits for the first. Lock order: docs/locks.md.
    """
    return bool(
        await tx.run(
            """
            INSERT INTO desk_deliveries (digest, received_at)
            VALUES (%(digest)s, %(now)s)
                ON CONFLICT (digest) DO NOTHING
            """,
            {"digest": digest, "now": now},
        )
    )


async def delete_before(tx: Tx, *, received_at: datetime) -> int:
    """Delete the deliveries of earlier times; return their number."""
    return await tx.run("DELETE FROM desk_deliveries WHERE received_at < %(received_at)s", {"received_at": received_at})
