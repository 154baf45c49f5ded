"""The tables `plans` and `code_entitlements`."""

from datetime import datetime

from soundmark.core.domain.codes.quota import CodeEntitlement
from soundmark.kit.postgres.transaction import AnyTx, Tx


async def insert(tx: Tx, *, organization_id: str, plan_id: str) -> None:
    """Give a new organisation a Codes plan."""
    await tx.run(
        "INSERT INTO code_entitlements (organization_id, plan_id) VALUES (%(organization_id)s, %(plan_id)s)",
        {"organization_id": organization_id, "plan_id": plan_id},
    )


async def get(tx: Tx, organization_id: str) -> CodeEntitlement:
    """Return what the organisation may issue."""
    entitlement = await tx.one_or_none(
        CodeEntitlement,
        """
        SELECT p.monthly_code_quota AS plan_monthly_quota, e.floor_monthly_quota, e.floor_ends_at
          FROM code_entitlements e
          JOIN plans p ON p.id = e.plan_id
         WHERE e.organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )
    assert entitlement is not None, "every organisation has a Codes plan"
    return entitlement


async def lock(tx: AnyTx, organization_id: str) -> CodeEntitlement:
    """Return what the organisation may issue; keep everybody else from issuing for it until the transaction ends.

    Count the issued Codes in a later statement: this one sees the database as it was before it waited. Lock order:
    docs/locks.md.
    """
    entitlement = await tx.one_or_none(
        CodeEntitlement,
        """
        SELECT p.monthly_code_quota AS plan_monthly_quota, e.floor_monthly_quota, e.floor_ends_at
          FROM code_entitlements e
          JOIN plans p ON p.id = e.plan_id
         WHERE e.organization_id = %(organization_id)s
           FOR NO KEY UPDATE OF e
        """,
        {"organization_id": organization_id},
    )
    assert entitlement is not None, "every organisation has a Codes plan"
    return entitlement


async def update_floor(tx: Tx, organization_id: str, *, monthly_quota: int, ends_at: datetime | None) -> None:
    """Set the floor of the organisation's quota. Issuances that wait for this transaction see the new floor.

    Lock order: docs/locks.md.
    """
    updated = await tx.run(
        """
        UPDATE code_entitlements
           SET floor_monthly_quota = %(monthly_quota)s,
               floor_ends_at       = %(ends_at)s
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id, "monthly_quota": monthly_quota, "ends_at": ends_at},
    )
    assert updated == 1, "every organisation has a Codes plan"
