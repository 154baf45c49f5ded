"""The job that gives an address to Codes that an older release issued."""

from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.codes.address import NO_ADDRESS, address_in
from soundmark.core.store.codes import broadcasts, codes
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.jobs import add_periodic

_AT_ONCE: Final = 200  # Some 10 ms for which a revocation may wait, and at most 3 MiB of payloads.

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` fill in addresses: after an upgrade, and while processes of the older release still issue."""
    add_periodic(app, ctx, "fill_addresses", "* * * * *", fill_addresses)


async def fill_addresses(ctx: Context) -> int:
    """Fill in the addresses of all Codes that have none; return how many. Safe at any time and concurrently.

    Each step is a transaction, so a later run finds what is left. Codes that somebody has locked,
    to revoke or delete them, are left to the next run.

    Raises: DatabaseUnavailable.
    Source: docs/adr/0033.
    """
    count, organization_id = 0, ""
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            found = await codes.find_tenant_without_addresses(tx, after=organization_id)
        if found is None:
            break
        organization_id = found
        count += await _fill_tenant(ctx, organization_id)
    if count:
        _log.info("addresses_filled", count=count)
    return count


async def _fill_tenant(ctx: Context, organization_id: str) -> int:
    count, after = 0, ""
    while True:
        async with ctx.db.transaction(tenant=organization_id) as tx:
            locked = await codes.lock_without_address(tx, organization_id, after=after, limit=_AT_ONCE)
            if not locked:
                return count
            signed = await broadcasts.find_many(tx, [code.broadcast_token for code in locked])
            addresses = [
                address_in(signed[code.broadcast_token].payload) if code.broadcast_token in signed else NO_ADDRESS
                for code in locked
            ]
            await codes.update_addresses(tx, organization_id, [code.xr_id for code in locked], addresses)
        count += len(locked)
        after = locked[-1].xr_id
