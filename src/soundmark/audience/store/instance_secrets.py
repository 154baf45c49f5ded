"""The table `instance_secrets`: what Audience made for itself on its first start."""

from datetime import datetime

from soundmark.kit.postgres import Tx


async def insert_if_absent(tx: Tx, name: str, *, sealed: bytes, now: datetime) -> None:
    """Keep a secret, unless there is one of this name; of several at once the first to commit stays."""
    await tx.run(
        """
        INSERT INTO instance_secrets (name, sealed, created_at)
        VALUES (%(name)s, %(sealed)s, %(now)s)
            ON CONFLICT (name) DO NOTHING
        """,
        {"name": name, "sealed": sealed, "now": now},
    )


async def find(tx: Tx, name: str) -> bytes | None:
    """The sealed secret."""
    sealed: bytes | None = await tx.value("SELECT sealed FROM instance_secrets WHERE name = %(name)s", {"name": name})
    return sealed
