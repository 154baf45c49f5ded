"""What billing says about the closure of an organisation."""

from datetime import datetime

from soundmark.core.store.billing import checkouts, subscriptions
from soundmark.kit.postgres.transaction import Tx


async def list_billing_blockers(tx: Tx, organization_id: str, *, now: datetime, limit: int) -> list[str]:
    """Return the ids of up to `limit` subscriptions and checkouts that keep an organisation from being deleted.

    These are the card subscriptions that renew themselves, and the checkouts that may still be paid.

    Source: contract, section 7, closure gates.
    """
    ids = await subscriptions.list_unending_card_ids(tx, organization_id, limit=limit)
    if len(ids) < limit:
        ids += await checkouts.list_pending_ids(tx, organization_id, now=now, limit=limit - len(ids))
    return ids
