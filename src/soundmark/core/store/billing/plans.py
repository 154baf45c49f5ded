"""The table `plans`, which does not belong to a tenant. No plan is ever deleted."""

from datetime import datetime
from typing import Any, Final, LiteralString

from soundmark.core.domain.billing.catalog import Plan, PlanTerms
from soundmark.kit.postgres.transaction import Tx

_COLUMNS: Final[LiteralString] = "id, name, product, monthly_code_quota, monthly_event_quota, active, updated_at"
_SELECT: Final[LiteralString] = "SELECT " + _COLUMNS + " FROM plans "


async def list_all(tx: Tx) -> list[Plan]:
    """List every plan by id."""
    return await tx.all(Plan, _SELECT + "ORDER BY id")


async def find(tx: Tx, plan_id: str) -> Plan | None:
    """Return a plan, active or not."""
    return await tx.one_or_none(Plan, _SELECT + "WHERE id = %(plan_id)s", {"plan_id": plan_id})


async def lock(tx: Tx, plan_id: str) -> Plan | None:
    """Return a plan, and keep it from changing until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(Plan, _SELECT + "WHERE id = %(plan_id)s FOR NO KEY UPDATE", {"plan_id": plan_id})


async def insert(tx: Tx, plan_id: str, terms: PlanTerms, *, now: datetime) -> Plan | None:
    """Insert a plan; return None if there is one with this id, also if it was inserted while this waited for it."""
    return await tx.one_or_none(
        Plan,
        """
        INSERT INTO plans (id, name, product, monthly_code_quota, monthly_event_quota, active, updated_at)
        VALUES (%(plan_id)s, %(name)s, %(product)s, %(monthly_code_quota)s, %(monthly_event_quota)s, %(active)s,
                %(now)s)
            ON CONFLICT DO NOTHING
        RETURNING """
        + _COLUMNS,
        {**_make_params(plan_id, terms), "product": terms.product, "now": now},
    )


async def update(tx: Tx, plan_id: str, terms: PlanTerms, *, now: datetime) -> Plan:
    """Change a locked plan, whose product is that of the terms."""
    plan = await tx.one_or_none(
        Plan,
        """
        UPDATE plans
           SET name = %(name)s,
               monthly_code_quota = %(monthly_code_quota)s,
               monthly_event_quota = %(monthly_event_quota)s,
               active = %(active)s,
               updated_at = %(now)s
         WHERE id = %(plan_id)s
        RETURNING """
        + _COLUMNS,
        {**_make_params(plan_id, terms), "now": now},
    )
    assert plan is not None, "a locked plan exists"
    return plan


def _make_params(plan_id: str, terms: PlanTerms) -> dict[str, Any]:
    return {
        "plan_id": plan_id,
        "name": terms.name,
        "monthly_code_quota": terms.monthly_code_quota,
        "monthly_event_quota": terms.monthly_event_quota,
        "active": terms.active,
    }
