"""Announcing to endpoints that Codes have expired."""

from datetime import timedelta
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.act import ACT_CODES_MAX, ACT_PREFIX
from soundmark.core.domain.webhooks.delivery import KEPT
from soundmark.core.store.webhooks import expiries
from soundmark.core.store.webhooks.expiries import Expiry
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint

_CLOCKS_DIFFER: Final = timedelta(minutes=1)  # Between processes, at most.
_log: Final = structlog.get_logger()


async def announce_expiries(ctx: Context) -> int:
    """Announce each Code that expired since the last look to its organisation's endpoints; return their number.

    A Code is announced once, because how far this got is stored with the acts, and no Code is left out, however long
    no worker ran, except those that expired before the first endpoint was created or more than 30 days ago. A revoked
    Code does not expire. Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    Source: contract, section 9, "Event types".
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        organization_ids = await expiries.list_tenants(tx)
    count = 0
    for organization_id in organization_ids:
        try:
            while (announced := await _announce_some(ctx, organization_id)) is not None:
                count += announced
        except DatabaseUnavailable:
            # Such as a stop that holds the Codes for longer than a statement may wait. Others do not wait for it.
            _log.warning("expiries_not_announced", organization_id=organization_id)
    return count


async def _announce_some(ctx: Context, organization_id: str) -> int | None:
    """Announce a page of Codes in a transaction; return how many, None if there was none to judge."""
    async with ctx.db.transaction(tenant=organization_id) as tx:
        if not await expiries.hold_tenant(tx, organization_id):
            return None
        await expiries.insert_if_new(tx, organization_id, now=ctx.clock.now())
        after = await _lock_position(ctx, tx, organization_id)
        if after is None:
            return None
        await expiries.lock_issuance(tx, organization_id)
        now = ctx.clock.now()  # Read after the lock wait: whatever is issued later expires later.
        last = await expiries.find_last(tx, organization_id, after=after, until=now, limit=ACT_CODES_MAX)
        if last is None:
            return None
        act_id = mint(ctx.entropy, ACT_PREFIX)
        count = await expiries.insert_acts(tx, organization_id, act_id=act_id, after=after, last=last, now=now)
        await expiries.update(tx, organization_id, announced=last)
    return count


async def _lock_position(ctx: Context, tx: Tx, organization_id: str) -> Expiry | None:
    """Return how far expiries were announced, or need not be; None if another process announces them."""
    position = await expiries.lock(tx, organization_id)
    first = await expiries.find_first_listening(tx, organization_id)
    if position is None or first is None:
        return None
    now = ctx.clock.now()
    if position.expires_at > now + _CLOCKS_DIFFER:
        # The clock was set back. What expires from now on is announced when it does, even if it was too early before.
        position = Expiry(now, "")
        await expiries.update(tx, organization_id, announced=position)
    oldest = max(first, now - KEPT)
    return position if position.expires_at >= oldest else Expiry(oldest, "")
