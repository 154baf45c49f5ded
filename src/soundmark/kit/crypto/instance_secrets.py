"""The table `instance_secrets`: secrets that a component creates on its first start and keeps sealed."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from soundmark.kit.crypto.resealing import SealedColumn
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.postgres.transaction import Tx

_TABLE: Final = "instance_secrets"
_COLUMN: Final = "sealed"

SEALED_COLUMN: Final = SealedColumn(
    _TABLE,
    _COLUMN,
    """SELECT '' AS organization_id, name AS "row", sealed FROM instance_secrets ORDER BY name""",
    "UPDATE instance_secrets SET sealed = %(sealed)s WHERE name = %(row)s",
)


async def find(tx: Tx, sealer: Sealer, name: str) -> bytes | None:
    """Return the secret of this name; None before the first start.

    Raises: SealBroken if it was sealed under another master key.
    """
    sealed: bytes | None = await tx.value("SELECT sealed FROM instance_secrets WHERE name = %(name)s", {"name": name})
    return None if sealed is None else sealer.unseal(sealed, table=_TABLE, column=_COLUMN, row=name)


async def ensure(tx: Tx, sealer: Sealer, name: str, *, make: Callable[[], bytes], now: datetime) -> bytes:
    """Return the secret of this name; on the first start, insert what `make` returns.

    If several processes start at once, the first to commit inserts, and all return its secret.

    Raises: SealBroken if it was sealed under another master key.
    """
    secret = await find(tx, sealer, name)
    if secret is None:
        sealed = sealer.seal(make(), table=_TABLE, column=_COLUMN, row=name)
        await _insert_if_absent(tx, name, sealed=sealed, now=now)
        secret = await find(tx, sealer, name)
    assert secret is not None, "this process or another one has inserted it"
    return secret


async def _insert_if_absent(tx: Tx, name: str, *, sealed: bytes, now: datetime) -> None:
    await tx.run(
        """
        INSERT INTO instance_secrets (name, sealed, created_at)
        VALUES (%(name)s, %(sealed)s, %(now)s)
            ON CONFLICT (name) DO NOTHING
        """,
        {"name": name, "sealed": sealed, "now": now},
    )
