"""What billing says about the closure of an organisation."""

from soundmark.kit.postgres.transaction import Tx


async def list_billing_blockers(tx: Tx, organization_id: str) -> list[str]:
    """Return the ids of the subscriptions and checkouts that keep an organisation from being deleted.

    There is no billing yet, so nothing does.

    Source: contract, section 7, closure gates.
    """
    assert organization_id, "gates are judged for one organisation"
    assert not tx.is_over, "gates are judged in the transaction that acts"
    return []
