"""The table `card_customers`."""

from datetime import datetime

from soundmark.kit.postgres.transaction import Tx


async def insert_or_update(tx: Tx, organization_id: str, *, customer_reference: str, now: datetime) -> None:
    """Store the card provider's customer of an organisation, whose locked checkout was paid.

    Lock order: docs/locks.md.
    """
    await tx.run(
        """
        INSERT INTO card_customers AS c (organization_id, customer_reference, updated_at)
        VALUES (%(organization_id)s, %(customer_reference)s, %(now)s)
            ON CONFLICT ON CONSTRAINT card_customers_pkey DO UPDATE
           SET customer_reference = excluded.customer_reference,
               updated_at = excluded.updated_at
         WHERE c.customer_reference <> excluded.customer_reference
        """,
        {"organization_id": organization_id, "customer_reference": customer_reference, "now": now},
    )


async def find(tx: Tx, organization_id: str) -> str | None:
    """Return the card provider's reference of the organisation's customer, which is never shown."""
    reference: str | None = await tx.value(
        """
        SELECT customer_reference
          FROM card_customers
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )
    return reference
