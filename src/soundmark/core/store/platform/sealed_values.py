"""All columns of values that are sealed under the master key, for resealing."""

from typing import Final

from soundmark.kit.crypto import instance_secrets
from soundmark.kit.crypto.resealing import SealedColumn, SealedColumns
from soundmark.kit.postgres.database import EVERY_TENANT

# tests/core/platform/test_reseal.py compares these with the columns that schema.sql calls sealed.
SEALED_COLUMNS: Final = SealedColumns(
    (
        SealedColumn(
            "signing_keys",
            "sealed_seed",
            """
        SELECT '' AS organization_id, key_id AS "row", sealed_seed AS sealed
          FROM signing_keys
         WHERE sealed_seed IS NOT NULL
         ORDER BY key_id
        """,
            "UPDATE signing_keys SET sealed_seed = %(sealed)s WHERE key_id = %(row)s",
        ),
        SealedColumn(
            "signing_keys",
            "sealed_public_key",
            """
        SELECT '' AS organization_id, key_id AS "row", sealed_public_key AS sealed
          FROM signing_keys
         ORDER BY key_id
        """,
            "UPDATE signing_keys SET sealed_public_key = %(sealed)s WHERE key_id = %(row)s",
        ),
        SealedColumn(
            "platform_secrets",
            "sealed",
            """SELECT '' AS organization_id, name AS "row", sealed FROM platform_secrets ORDER BY name""",
            "UPDATE platform_secrets SET sealed = %(sealed)s WHERE name = %(row)s",
        ),
        instance_secrets.SEALED_COLUMN,
        SealedColumn(
            "invitations",
            "sealed_secret",
            """
        SELECT organization_id, id AS "row", sealed_secret AS sealed
          FROM invitations
         WHERE sealed_secret IS NOT NULL
         ORDER BY organization_id, id
        """,
            """
        UPDATE invitations
           SET sealed_secret = %(sealed)s
         WHERE organization_id = %(organization_id)s
           AND id = %(row)s
        """,
        ),
        SealedColumn(
            "webhook_endpoints",
            "sealed_secret",
            """
        SELECT organization_id, id AS "row", sealed_secret AS sealed
          FROM webhook_endpoints
         ORDER BY organization_id, id
        """,
            """
        UPDATE webhook_endpoints
           SET sealed_secret = %(sealed)s
         WHERE organization_id = %(organization_id)s
           AND id = %(row)s
        """,
        ),
        SealedColumn(
            "webhook_endpoints",
            "sealed_earlier_secret",
            """
        SELECT organization_id, id AS "row", sealed_earlier_secret AS sealed
          FROM webhook_endpoints
         WHERE sealed_earlier_secret IS NOT NULL
         ORDER BY organization_id, id
        """,
            """
        UPDATE webhook_endpoints
           SET sealed_earlier_secret = %(sealed)s
         WHERE organization_id = %(organization_id)s
           AND id = %(row)s
        """,
        ),
        SealedColumn(
            "tickets",
            "sealed_message",
            """
        SELECT organization_id, id AS "row", sealed_message AS sealed
          FROM tickets
         WHERE sealed_message IS NOT NULL
         ORDER BY organization_id, id
        """,
            """
        UPDATE tickets
           SET sealed_message = %(sealed)s
         WHERE organization_id = %(organization_id)s
           AND id = %(row)s
        """,
        ),
    ),
    lock="""
    LOCK TABLE signing_keys, platform_secrets, instance_secrets, invitations, webhook_endpoints, tickets
            IN EXCLUSIVE MODE
    """,
    tenant=EVERY_TENANT,
)
