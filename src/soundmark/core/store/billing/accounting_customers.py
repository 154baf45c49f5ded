"""The table `accounting_customers`."""

from datetime import datetime

from soundmark.core.domain.billing.catalog import AccountingCustomer
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


async def insert_if_new(tx: Tx, organization_id: str, *, thirdparty_id: int, now: datetime) -> None:
    """Insert the organisation's third party, unless it has one.

    Of two transactions for one organisation, the second waits for the first.
    """
    await tx.run(
        """
        INSERT INTO accounting_customers (organization_id, thirdparty_id, updated_at)
        VALUES (%(organization_id)s, %(thirdparty_id)s, %(now)s)
            ON CONFLICT (organization_id) DO NOTHING
        """,
        {"organization_id": organization_id, "thirdparty_id": thirdparty_id, "now": now},
    )


async def lock(tx: Tx, organization_id: str) -> int:
    """Return the organisation's third party, which exists, and keep it from changing until the transaction ends.

    Lock order: docs/locks.md.
    """
    thirdparty_id: int | None = await tx.value(
        """
        SELECT thirdparty_id
          FROM accounting_customers
         WHERE organization_id = %(organization_id)s
           FOR NO KEY UPDATE
        """,
        {"organization_id": organization_id},
    )
    assert thirdparty_id is not None, "the row was inserted before, if it was not there"
    return thirdparty_id


async def update(tx: Tx, organization_id: str, *, thirdparty_id: int, now: datetime) -> AccountingCustomer:
    """Set the locked third party of an organisation, and return the organisation as a customer."""
    customer = await tx.one_or_none(
        AccountingCustomer,
        """
        UPDATE accounting_customers c
           SET thirdparty_id = %(thirdparty_id)s,
               updated_at = %(now)s
          FROM organizations o
         WHERE c.organization_id = %(organization_id)s
           AND o.id = %(organization_id)s
        RETURNING c.organization_id, o.name AS organization_name, c.thirdparty_id, c.updated_at
        """,
        {"organization_id": organization_id, "thirdparty_id": thirdparty_id, "now": now},
    )
    assert customer is not None, "the row is locked"
    return customer
