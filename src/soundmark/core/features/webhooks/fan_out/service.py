"""Turning acts into events and deliveries, in the worker."""

from typing import Final

from soundmark.core.context import Context
from soundmark.core.store.webhooks import fan_out as store
from soundmark.kit.postgres.database import EVERY_TENANT

_TENANTS_MAX: Final = 100
# A transaction ends after a few thousand rows: it takes about 100 ms with one endpoint, and a second with twenty.
_ACTS_MAX: Final = 200
_EVENTS_MAX: Final = 2_000


async def fan_out(ctx: Context) -> int:
    """Turn acts into events and deliveries, in one short transaction for each of several organisations.

    Return the number of acts; the caller continues at once unless it is 0. Safe at any time, concurrently, and if it is
    cut off: an act is deleted in the transaction that writes its events. An organisation whose deletion is in its last
    phase is left out, and its acts are deleted with it.

    Raises: DatabaseUnavailable.
    Source: contract, section 9, "Delivery".
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        organization_ids = await store.list_tenants(tx, limit=_TENANTS_MAX)
    count = 0
    for organization_id in organization_ids:
        async with ctx.db.transaction(tenant=organization_id) as tx:
            if await store.hold_tenant(tx, organization_id):
                count += await store.insert_events(
                    tx, organization_id, acts_max=_ACTS_MAX, events_max=_EVENTS_MAX, now=ctx.clock.now()
                )
    return count
