"""Purchases that wait for a payment, and the names of what was bought."""

import asyncio
from dataclasses import dataclass

from soundmark_sdk.client.records import Checkout, Offer

from soundmark.console.parts import read_part
from soundmark.console.visit import Visit


@dataclass(frozen=True, slots=True)
class PendingPurchase:
    """A checkout that waits for a payment, and its offer; None if that is no longer for sale or cannot be read."""

    checkout: Checkout
    offer: Offer | None


async def list_pending(visit: Visit) -> list[PendingPurchase] | None:
    """Return what waits for a payment in the organisation in the URL, oldest first, or None if it cannot be read."""
    pending = await read_part(visit.core.billing.pending_checkouts())
    if pending is None or not pending.data:
        return None if pending is None else []
    offers = await read_part(visit.core.billing.offers())
    by_id = {each.id: each for each in offers.data} if offers is not None else {}
    return [PendingPurchase(each, by_id.get(each.offer_id)) for each in pending.data]


async def name_purchases(visit: Visit) -> dict[str, str]:
    """Return the plans of pending checkouts and of the newest subscriptions by their ids, as far as they are read."""
    pending, subscriptions = await asyncio.gather(list_pending(visit), read_part(visit.core.subscriptions.page()))
    names = {each.checkout.id: each.offer.plan.name for each in pending or () if each.offer is not None}
    return names | {each.id: each.plan_name for each in (subscriptions.data if subscriptions is not None else ())}
