"""The lists of the catalogue that name organisations. They show the rows of every tenant."""

from soundmark.core.domain.billing.catalog import AccountingCustomer, AudienceContract
from soundmark.kit.postgres.transaction import Tx


async def list_audience_contracts(tx: Tx) -> list[AudienceContract]:
    """List the contracts of every organisation, whatever their status; of one organisation, the newest first."""
    return await tx.all(
        AudienceContract,
        """
        SELECT organization_id, plan_id, contract_reference, status, current_period_end AS period_end, updated_at
          FROM subscriptions
         WHERE provider = 'contract'
           AND product = 'audience'
         ORDER BY organization_id, created_at DESC, id DESC
        """,
    )


async def list_accounting_customers(tx: Tx) -> list[AccountingCustomer]:
    """List the organisations that have a third party in the accounting system."""
    return await tx.all(
        AccountingCustomer,
        """
        SELECT c.organization_id, o.name AS organization_name, c.thirdparty_id, c.updated_at
          FROM accounting_customers c
          JOIN organizations o ON o.id = c.organization_id
         ORDER BY c.organization_id
        """,
    )
