"""The tables `platform_secrets` and `platform_configuration`, which do not belong to a tenant."""

from datetime import datetime

from soundmark.core.domain.platform.settings import StoredSecret, StoredValue
from soundmark.kit.postgres.transaction import Tx


async def list_secrets(tx: Tx) -> list[StoredSecret]:
    """List every stored credential."""
    return await tx.all(StoredSecret, "SELECT name, sealed, updated_at FROM platform_secrets ORDER BY name")


async def list_values(tx: Tx) -> list[StoredValue]:
    """List every stored override."""
    return await tx.all(StoredValue, "SELECT name, value, updated_at FROM platform_configuration ORDER BY name")


async def insert_or_update_secret(tx: Tx, name: str, *, sealed: bytes, now: datetime) -> None:
    """Store a credential in place of the previous one."""
    await tx.run(
        """
        INSERT INTO platform_secrets (name, sealed, updated_at)
        VALUES (%(name)s, %(sealed)s, %(now)s)
        ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at
        """,
        {"name": name, "sealed": sealed, "now": now},
    )


async def insert_or_update_value(tx: Tx, name: str, *, value: str, now: datetime) -> None:
    """Store an override in place of the previous one."""
    await tx.run(
        """
        INSERT INTO platform_configuration (name, value, updated_at)
        VALUES (%(name)s, %(value)s, %(now)s)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
        """,
        {"name": name, "value": value, "now": now},
    )


async def delete_value(tx: Tx, name: str) -> None:
    """Delete an override, if there is one."""
    await tx.run("DELETE FROM platform_configuration WHERE name = %(name)s", {"name": name})
