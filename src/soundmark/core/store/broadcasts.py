"""The table `broadcasts`: what a receiver's question reads."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

from soundmark.kit.postgres import Tx

# One statement for every question, whatever its token: a revoked Code takes the same path as one that never was, so
# no answer's time tells them apart. The hot path runs it on a connection of its own, with one array literal of tokens:
# the driver takes longer to make an array of a list than the server takes to find the rows.
FIND_LIVE: Final[LiteralString] = """
    SELECT token, payload, signature
      FROM broadcasts
     WHERE token = ANY(%s::text[])
       AND revoked_at IS NULL
"""


async def update_revoked(tx: Tx, *, token: str, now: datetime) -> None:
    """Make a token unanswerable from the commit on. Lock order: docs/locks.md."""
    await tx.run(
        """
        UPDATE broadcasts
           SET revoked_at = %(now)s
         WHERE token = %(token)s
           AND revoked_at IS NULL
        """,
        {"token": token, "now": now},
    )


async def update_revoked_many(tx: Tx, *, tokens: Sequence[str], now: datetime) -> None:
    """Make tokens unanswerable from the commit on. Lock order: docs/locks.md."""
    await tx.run(
        """
        UPDATE broadcasts
           SET revoked_at = %(now)s
         WHERE token = ANY(%(tokens)s::text[])
           AND revoked_at IS NULL
        """,
        {"tokens": list(tokens), "now": now},
    )
