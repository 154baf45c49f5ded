"""The table `accounting_customers`."""

from soundmark.kit.postgres.transaction import Tx


async def find_thirdparty_id(tx: Tx, organization_id: str) -> int | None:
    """Return the third party that the organisation's invoices go to; None if it has none."""
    thirdparty_id: int | None = await tx.value(
        """
        SELECT thirdparty_id
          FROM accounting_customers
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )
    return thirdparty_id
