"""All columns of values that are sealed under the master key, for resealing."""

from typing import Final, LiteralString

from soundmark.kit.crypto import instance_secrets
from soundmark.kit.crypto.resealing import SealedColumn, SealedColumns
from soundmark.kit.postgres.database import EVERY_TENANT


def _of_tenants(table: LiteralString, column: LiteralString) -> SealedColumn:
    """Return a column of a table of tenants, whose rows have ids."""
    listing = 'SELECT organization_id, id AS "row", ' + column + " AS sealed FROM " + table
    return SealedColumn(
        table,
        column,
        listing + " WHERE " + column + " IS NOT NULL ORDER BY organization_id, id",
        "UPDATE "
        + table
        + " SET "
        + column
        + " = %(sealed)s WHERE organization_id = %(organization_id)s AND id = %(row)s",
    )


def _of_platform(table: LiteralString, column: LiteralString, key: LiteralString) -> SealedColumn:
    """Return a column of a table that belongs to no tenant, and has the primary key `key`."""
    listing = "SELECT '' AS organization_id, " + key + ' AS "row", ' + column + " AS sealed FROM " + table
    return SealedColumn(
        table,
        column,
        listing + " WHERE " + column + " IS NOT NULL ORDER BY " + key,
        "UPDATE " + table + " SET " + column + " = %(sealed)s WHERE " + key + " = %(row)s",
    )


# tests/core/platform/test_reseal.py compares these with the columns that schema.sql calls sealed.
SEALED_COLUMNS: Final = SealedColumns(
    (
        _of_platform("signing_keys", "sealed_seed", "key_id"),
        _of_platform("signing_keys", "sealed_public_key", "key_id"),
        _of_platform("log_keys", "sealed_seed", "id"),
        _of_platform("platform_secrets", "sealed", "name"),
        instance_secrets.SEALED_COLUMN,
        _of_tenants("invitations", "sealed_secret"),
        _of_tenants("webhook_endpoints", "sealed_secret"),
        _of_tenants("webhook_endpoints", "sealed_earlier_secret"),
        _of_tenants("tickets", "sealed_message"),
        _of_tenants("ticket_replies", "sealed_message"),
        _of_platform("abuse_reports", "sealed_text", "id"),
        _of_platform("abuse_reports", "sealed_contact", "id"),
        _of_platform("abuse_reports", "sealed_note", "id"),
    ),
    lock="""
    LOCK TABLE signing_keys, log_keys, platform_secrets, instance_secrets, invitations, webhook_endpoints, tickets,
               ticket_replies, abuse_reports
            IN EXCLUSIVE MODE
    """,
    tenant=EVERY_TENANT,
)
