"""The job that ends checkouts that nobody paid, and those that never got a page."""

from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.billing.checkout import LIFE, PAGE_WITHIN
from soundmark.core.features.billing.checkouts.finishing import fail_without_page
from soundmark.core.store.billing import checkouts
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.jobs import add_periodic

_AT_ONCE: Final = 500  # In one run; what is left waits for the next minute.
_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` end checkouts."""
    add_periodic(app, ctx, "end_checkouts", "* * * * *", fail_checkouts, expire_checkouts)


async def expire_checkouts(ctx: Context) -> int:
    """Expire the pending checkouts that are 24 hours old; return their number.

    The provider is not asked: its own page has expired by then, and a payment that was made completes the checkout
    whenever it is verified. Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    Source: API v1, "States and transitions", Billing checkout.
    """
    now = ctx.clock.now()
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        places = await checkouts.list_expired(tx, now=now, limit=_AT_ONCE)
    count = 0
    for place in places:
        async with ctx.db.transaction(tenant=place.organization_id) as tx:
            count += await checkouts.update_expired(tx, place.organization_id, place.id, now=now)
    if count:
        _log.info("checkouts_expired", count=count)
    return count


async def fail_checkouts(ctx: Context) -> int:
    """Fail the checkouts that got no page within 15 minutes, because a process died; return their number.

    Their idempotency keys are free again. Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    """
    expiring_until = ctx.clock.now() - PAGE_WITHIN + LIFE
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        places = await checkouts.list_without_page(tx, expiring_until=expiring_until, limit=_AT_ONCE)
    count = 0
    for place in places:
        async with ctx.db.transaction(tenant=place.organization_id) as tx:
            found = await checkouts.lock(tx, place.organization_id, place.id)
            if found is not None and found.status == "pending" and not found.has_page:
                await fail_without_page(tx, found)
                count += 1
    if count:
        _log.warning("checkouts_without_page", count=count)
    return count
