"""The tables `platform_secrets` and `platform_configuration`: the operator's own, no tenant's."""

from datetime import datetime

from soundmark.core.domain.platform import ConfigurationName, SecretName, StoredSecret, StoredValue
from soundmark.kit.postgres import Tx


async def list_secrets(tx: Tx) -> list[StoredSecret]:
    """Every credential that the database has."""
    return await tx.all(StoredSecret, "SELECT name, sealed, updated_at FROM platform_secrets ORDER BY name")


async def list_values(tx: Tx) -> list[StoredValue]:
    """Every override that the database has."""
    return await tx.all(StoredValue, "SELECT name, value, updated_at FROM platform_configuration ORDER BY name")


async def put_secret(tx: Tx, name: SecretName, *, sealed: bytes, now: datetime) -> None:
    """Keep a credential in the place of the one before."""
    await tx.run(
        """
        INSERT INTO platform_secrets (name, sealed, updated_at)
        VALUES (%(name)s, %(sealed)s, %(now)s)
        ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at
        """,
        {"name": name, "sealed": sealed, "now": now},
    )


async def put_value(tx: Tx, name: ConfigurationName, *, value: str, now: datetime) -> None:
    """Keep an override in the place of the one before."""
    await tx.run(
        """
        INSERT INTO platform_configuration (name, value, updated_at)
        VALUES (%(name)s, %(value)s, %(now)s)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
        """,
        {"name": name, "value": value, "now": now},
    )


async def delete_value(tx: Tx, name: ConfigurationName) -> None:
    """Keep no override, where there was one."""
    await tx.run("DELETE FROM platform_configuration WHERE name = %(name)s", {"name": name})
