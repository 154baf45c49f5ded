"""What is left of a Code that was revoked: the offline packs that still name it."""

from datetime import datetime

from soundmark.core.context import Context
from soundmark.core.domain.codes.campaign import Campaign
from soundmark.core.store.codes import offline_packs


async def find_packs_valid_until(ctx: Context, campaign: Campaign) -> datetime | None:
    """Return until when receivers may answer from packs that name Codes of a campaign; None without such a pack.

    Called after the Codes were revoked: a pack that read them before is waited for, and later ones do not name them.

    Source: contract, details, point A25.
    """
    async with ctx.db.transaction(tenant=campaign.organization_id) as tx:
        await offline_packs.hold(tx, campaign.organization_id)
        return await offline_packs.find_valid_until(
            tx, campaign.organization_id, campaign=campaign, now=ctx.clock.now()
        )
