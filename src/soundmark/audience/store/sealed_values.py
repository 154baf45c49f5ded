"""Every column that holds what a master key sealed, for the one operation that changes the master key."""

from collections.abc import Sequence
from typing import Final

from soundmark.kit.postgres import Tx
from soundmark.kit.resealing import SealedColumn

# Held by tests/audience/test_reseal.py to whatever schema.sql calls sealed.
SEALED_COLUMNS: Final[Sequence[SealedColumn]] = (
    SealedColumn(
        "integrations",
        "sealed_secret",
        """SELECT organization_id, id AS "row", sealed_secret AS sealed FROM integrations ORDER BY id""",
        "UPDATE integrations SET sealed_secret = %(sealed)s WHERE id = %(row)s",
    ),
    SealedColumn(
        "instance_secrets",
        "sealed",
        """SELECT '' AS organization_id, name AS "row", sealed FROM instance_secrets ORDER BY name""",
        "UPDATE instance_secrets SET sealed = %(sealed)s WHERE name = %(row)s",
    ),
)


async def lock_all(tx: Tx) -> None:
    """Nobody else changes a sealed value, or locks its row, until the transaction ends. Lock order: docs/locks.md."""
    await tx.run("LOCK TABLE integrations, instance_secrets IN EXCLUSIVE MODE")
