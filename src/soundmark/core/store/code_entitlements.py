"""The tables `plans` and `code_entitlements`."""

from soundmark.kit.postgres import Tx


async def insert(tx: Tx, *, organization_id: str, plan_id: str) -> None:
    """Give a new organisation a Codes plan."""
    await tx.run(
        "INSERT INTO code_entitlements (organization_id, plan_id) VALUES (%(organization_id)s, %(plan_id)s)",
        {"organization_id": organization_id, "plan_id": plan_id},
    )


async def find_monthly_quota(tx: Tx, organization_id: str) -> int:
    """How many Codes the organisation's plan allows in a month."""
    quota: int | None = await tx.value(
        """
        SELECT p.monthly_code_quota
          FROM code_entitlements e
          JOIN plans p ON p.id = e.plan_id
         WHERE e.organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )
    assert quota is not None, "every organisation has a Codes plan"
    return quota


async def lock_monthly_quota(tx: Tx, organization_id: str) -> int:
    """`find_monthly_quota`, and nobody else issues for the organisation until the transaction ends.

    What was issued must be counted after this, by a statement of its own: this one sees what was there before it
    waited. Lock order: docs/locks.md.
    """
    quota: int | None = await tx.value(
        """
        SELECT p.monthly_code_quota
          FROM code_entitlements e
          JOIN plans p ON p.id = e.plan_id
         WHERE e.organization_id = %(organization_id)s
           FOR NO KEY UPDATE OF e
        """,
        {"organization_id": organization_id},
    )
    assert quota is not None, "every organisation has a Codes plan"
    return quota
