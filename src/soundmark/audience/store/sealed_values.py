"""Every column of values that are sealed under the master key, for the operation that replaces that key."""

from collections.abc import Sequence
from typing import Final

from soundmark.kit.postgres import Tx
from soundmark.kit.resealing import SealedColumn

# tests/audience/test_reseal.py compares these with the columns that schema.sql calls sealed.
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
    """Lock every table of sealed values against changes until the transaction ends. Lock order: docs/locks.md."""
    await tx.run("LOCK TABLE integrations, instance_secrets IN EXCLUSIVE MODE")
