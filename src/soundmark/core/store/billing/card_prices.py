"""The table `offers`, looked up by a price of the card provider."""

from collections.abc import Sequence
from dataclasses import dataclass

from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class _PricedPlan:
    price_reference: str
    plan_id: str


async def find_plan_ids(tx: Tx, price_references: Sequence[str]) -> dict[str, str]:
    """Return, by price, the plan that a card offer with it sells or sold; an active offer comes first."""
    found = await tx.all(
        _PricedPlan,
        """
        SELECT DISTINCT ON (price_reference) price_reference, plan_id
          FROM offers
         WHERE price_reference = ANY(%(price_references)s)
           AND provider = 'card'
         ORDER BY price_reference, active DESC, id
        """,
        {"price_references": list(price_references)},
    )
    return {each.price_reference: each.plan_id for each in found}
