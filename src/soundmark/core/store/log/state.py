"""The tables `log_state` and `log_keys`."""

from dataclasses import asdict
from datetime import datetime

from soundmark.core.domain.log.state import LogKey, LogState, StopReason
from soundmark.kit.postgres.transaction import Tx


async def insert(tx: Tx, origin: str, *, now: datetime) -> bool:
    """Insert the state of a new log, unless there is one; return whether it was inserted."""
    inserted = await tx.run(
        """
        INSERT INTO log_state (origin, size, stopped_reason, entered_token, created_at)
        VALUES (%(origin)s, 0, NULL, '', %(now)s)
            ON CONFLICT (is_only) DO NOTHING
        """,
        {"origin": origin, "now": now},
    )
    return inserted > 0


async def find(tx: Tx) -> LogState | None:
    """Return the state of the log; None before Core's first start."""
    return await tx.one_or_none(
        LogState, "SELECT origin, size, stopped_reason, entered_token, created_at FROM log_state"
    )


async def lock(tx: Tx) -> LogState | None:
    """Lock the log until the transaction ends, so that it grows in one place only. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        LogState,
        """
        SELECT origin, size, stopped_reason, entered_token, created_at
          FROM log_state
           FOR NO KEY UPDATE
        """,
    )


async def update_grown(tx: Tx, *, size: int, entered_token: str | None) -> None:
    """Set the size of the locked log's tree, and how far the earlier Codes are entered."""
    await tx.run(
        "UPDATE log_state SET size = %(size)s, entered_token = %(entered_token)s",
        {"size": size, "entered_token": entered_token},
    )


async def update_stopped(tx: Tx, reason: StopReason | None) -> None:
    """Stop the locked log, or, without a reason, let it go on; and wake the worker."""
    await tx.value(
        "UPDATE log_state SET stopped_reason = %(reason)s RETURNING pg_notify('log_queue', '')", {"reason": reason}
    )


async def delete(tx: Tx) -> None:
    """Delete the whole log, except for what waits to enter it."""
    await tx.run("TRUNCATE log_state, log_keys, log_leaves, log_tiles, log_checkpoints")


async def insert_key(tx: Tx, key: LogKey) -> None:
    """Insert a key that signs from the next checkpoint on."""
    await tx.run(
        """
        INSERT INTO log_keys (id, public_key, sealed_seed, created_at)
        VALUES (%(id)s, %(public_key)s, %(sealed_seed)s, %(created_at)s)
        """,
        asdict(key),
    )


async def list_keys(tx: Tx) -> list[LogKey]:
    """Return every key, retired ones included, the newest first."""
    return await tx.all(
        LogKey,
        """
        SELECT id, public_key, sealed_seed, created_at, retired_at
          FROM log_keys
         ORDER BY created_at DESC, id
        """,
    )


async def update_key_retired(tx: Tx, key_id: str, *, now: datetime) -> None:
    """Retire a key, which permanently loses its secret half."""
    await tx.run(
        "UPDATE log_keys SET sealed_seed = NULL, retired_at = %(now)s WHERE id = %(key_id)s",
        {"key_id": key_id, "now": now},
    )
