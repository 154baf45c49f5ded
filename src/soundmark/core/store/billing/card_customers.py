"""The table `card_customers`."""

from soundmark.kit.postgres.transaction import Tx


async def find(tx: Tx, organization_id: str) -> str | None:
    """Return the card provider's reference of the organisation, which is never shown."""
    reference: str | None = await tx.value(
        """
        SELECT customer_reference
          FROM card_customers
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )
    return reference
