"""The table `mail_counts`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from soundmark.kit.postgres.arrays import bytes_array
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class MailCount:
    """The number of mails of a day that were counted under one digest."""

    counted: bytes
    mails_count: int


async def lock(tx: Tx, *, day: date, counted: Sequence[bytes]) -> dict[bytes, int]:
    """Lock the counts of a day in the given order until the transaction ends, and return them. A new one is zero.

    Lock order: docs/locks.md.
    """
    found = await tx.all(
        MailCount,
        """
        INSERT INTO mail_counts (day, counted, mails_count)
        SELECT %(day)s, asked.counted, 0
          FROM unnest(%(counted)s::bytea[]) WITH ORDINALITY AS asked (counted, place)
         ORDER BY asked.place
            ON CONFLICT ON CONSTRAINT mail_counts_pkey DO UPDATE
           SET mails_count = mail_counts.mails_count
        RETURNING counted, mails_count
        """,
        {"day": day, "counted": bytes_array(counted)},
    )
    return {row.counted: row.mails_count for row in found}


async def update(tx: Tx, *, day: date, counted: Sequence[bytes]) -> None:
    """Add one mail to each of these locked counts."""
    await tx.run(
        """
        UPDATE mail_counts
           SET mails_count = mails_count + 1
         WHERE day = %(day)s
           AND counted = ANY(%(counted)s::bytea[])
        """,
        {"day": day, "counted": bytes_array(counted)},
    )


async def delete_before(tx: Tx, *, day: date) -> int:
    """Delete the counts of earlier days; return their number."""
    return await tx.run("DELETE FROM mail_counts WHERE day < %(day)s", {"day": day})
