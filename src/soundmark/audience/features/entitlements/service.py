"""Commands on entitlements."""

from soundmark.audience.context import Context
from soundmark.audience.domain.entitlement import Entitlement
from soundmark.audience.store import entitlements


async def put_entitlement(ctx: Context, entitlement: Entitlement) -> Entitlement:
    """The organisation's entitlement is the one of the latest revision that was ever told; which one that is.

    Repeated, late and reordered projections of Core's end alike.

    Source: API v1, "States and transitions", entitlements; contract, section 6.
    """
    async with ctx.db.transaction() as tx:
        await entitlements.insert_or_update_newer(tx, entitlement)
        kept = await entitlements.find(tx, entitlement.organization_id, entitlement.mode)
    assert kept is not None, "it was put or was there"
    return kept
