"""Every column of values that are sealed under the master key, for the operation that replaces that key."""

from typing import Final

from soundmark.kit.crypto import instance_secrets
from soundmark.kit.crypto.resealing import SealedColumn, SealedColumns

# tests/audience/test_reseal.py compares these with the columns that schema.sql calls sealed.
SEALED_COLUMNS: Final = SealedColumns(
    (
        SealedColumn(
            "integrations",
            "sealed_secret",
            """SELECT organization_id, id AS "row", sealed_secret AS sealed FROM integrations ORDER BY id""",
            "UPDATE integrations SET sealed_secret = %(sealed)s WHERE id = %(row)s",
        ),
        instance_secrets.SEALED_COLUMN,
    ),
    lock="LOCK TABLE integrations, instance_secrets IN EXCLUSIVE MODE",
)
