"""Turning acts into events and deliveries, in the worker."""

from typing import Final

from soundmark.core.context import Context
from soundmark.core.store.webhooks import fan_out as store
from soundmark.kit.postgres.database import EVERY_TENANT

_TENANTS_MAX: Final = 100
# A transaction ends after some 4,000 rows, which take about 100 ms: others wait for those of an organisation with many
# endpoints. An act of 1,000 Codes for twenty endpoints takes half a second.
_ACTS_MAX: Final = 200
_ROWS_MAX: Final = 4_000


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
                    tx, organization_id, acts_max=_ACTS_MAX, rows_max=_ROWS_MAX, now=ctx.clock.now()
                )
    return count
