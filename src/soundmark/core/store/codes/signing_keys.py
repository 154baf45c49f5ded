"""The table `signing_keys`."""

from dataclasses import asdict
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.kit.crypto.signing import KeyStatus
from soundmark.kit.postgres.transaction import Tx

_LIST: Final[LiteralString] = """
    SELECT key_id, public_key, sealed_seed, status, created_at, activated_at, superseded_at, retired_at,
           sealed_public_key, push_began_at, pushed_at
      FROM signing_keys
     ORDER BY created_at, key_id
"""


async def list_all(tx: Tx) -> list[SigningKeyRecord]:
    """Return every signing key, including retired ones, oldest first."""
    return await tx.all(SigningKeyRecord, _LIST)


async def lock_all(tx: Tx) -> list[SigningKeyRecord]:
    """Lock the table against changes until the transaction ends, and return every key. Lock order: docs/locks.md."""
    await tx.run("LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE")
    return await list_all(tx)


async def insert(tx: Tx, record: SigningKeyRecord) -> None:
    """Insert a key."""
    await tx.run(
        """
        INSERT INTO signing_keys (key_id, public_key, sealed_seed, status, created_at, activated_at, sealed_public_key)
        VALUES (%(key_id)s, %(public_key)s, %(sealed_seed)s, %(status)s, %(created_at)s, %(activated_at)s,
                %(sealed_public_key)s)
        """,
        asdict(record),
    )


async def update_status(tx: Tx, key_id: str, status: KeyStatus, *, now: datetime) -> None:
    """Set the status of one key and the time of the change. A retired key permanently loses its secret half."""
    await tx.run(
        """
        UPDATE signing_keys
           SET status        = %(status)s,
               sealed_seed   = CASE WHEN %(status)s = 'retired' THEN NULL ELSE sealed_seed END,
               activated_at  = CASE WHEN %(status)s = 'active' THEN %(now)s ELSE activated_at END,
               superseded_at = CASE WHEN %(status)s = 'retiring' THEN %(now)s ELSE superseded_at END,
               retired_at    = CASE WHEN %(status)s = 'retired' THEN %(now)s ELSE retired_at END
         WHERE key_id = %(key_id)s
        """,
        {"key_id": key_id, "status": status, "now": now},
    )


async def update_push_began(tx: Tx, key_id: str, *, now: datetime) -> None:
    """Note when Audience began to receive the key; the first such time stays."""
    await tx.run(
        "UPDATE signing_keys SET push_began_at = COALESCE(push_began_at, %(now)s) WHERE key_id = %(key_id)s",
        {"key_id": key_id, "now": now},
    )


async def update_pushed(tx: Tx, key_id: str, *, pushed_at: datetime | None) -> None:
    """Note when every integration had received the key; None if one of them may lack it."""
    await tx.run(
        "UPDATE signing_keys SET pushed_at = %(pushed_at)s WHERE key_id = %(key_id)s",
        {"key_id": key_id, "pushed_at": pushed_at},
    )
