"""The table `offers`, looked up by a price of the card provider."""

from typing import cast

from soundmark.kit.postgres.transaction import Tx


async def find_plan_id(tx: Tx, *, price_reference: str) -> str | None:
    """Return the plan that a card offer with this price sells or sold; an active offer comes first."""
    return cast(
        "str | None",
        await tx.value(
            """
            SELECT plan_id
              FROM offers
             WHERE price_reference = %(price_reference)s
               AND provider = 'card'
             ORDER BY active DESC, id
             LIMIT 1
            """,
            {"price_reference": price_reference},
        ),
    )
