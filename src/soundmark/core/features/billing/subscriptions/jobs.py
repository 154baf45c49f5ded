"""Jobs that end what is over, and carry the entitlements that follow to Audience."""

from typing import Final, get_args

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.billing.subscription import CARD_GRACE
from soundmark.core.steps.entitlement import refresh_entitlement
from soundmark.core.steps.subscriptions import REFRESH_PLAN, end_subscription
from soundmark.core.store.audience import entitlements as audience_entitlements
from soundmark.core.store.audience.entitlements import EntitlementPlace
from soundmark.core.store.billing import subscriptions
from soundmark.core.store.billing.subscriptions import SubscriptionPlace
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.jobs import add_deferred, add_periodic
from soundmark.wire.shape import EntitledMode

_AT_ONCE: Final = 100  # Rows in one query; each is then changed in a transaction of its own.

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` end subscriptions, and refresh entitlements."""
    add_periodic(app, ctx, "end_subscriptions", "* * * * *", end_subscriptions, refresh_ended_entitlements)
    add_deferred(app, ctx, REFRESH_PLAN, refresh_plan)


async def end_subscriptions(ctx: Context) -> int:
    """Expire the contracts and prepaid subscriptions whose period is over; return their number.

    Safe at any time and concurrently: each is judged again under the lock of its organisation's subscriptions. A card
    subscription has the status that its provider says.

    Raises: DatabaseUnavailable.
    Source: contract, section 7, what entitles.
    """
    ended_count, after = 0, None
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            places = await subscriptions.list_over(tx, now=ctx.clock.now(), after=after, limit=_AT_ONCE)
        for place in places:
            ended_count += await _end(ctx, place)
        if len(places) < _AT_ONCE:
            return ended_count
        after = places[-1]


async def _end(ctx: Context, place: SubscriptionPlace) -> bool:
    async with ctx.db.transaction(tenant=place.organization_id) as tx:
        is_open = await organizations.hold_open(tx, place.organization_id)
        await subscriptions.lock_all(tx, place.organization_id)
        now = ctx.clock.now()
        subscription = await subscriptions.find(tx, place.organization_id, place.id)
        if subscription is None or not subscription.is_over(now):
            return False  # It was extended or cancelled meanwhile, or its organisation deleted.
        await end_subscription(ctx, tx, subscription, is_open=is_open, now=now)
    _log.info("subscription_expired", organization_id=place.organization_id, subscription_id=place.id)
    return True


async def refresh_ended_entitlements(ctx: Context) -> int:
    """Carry on with the next subscription where the one that counted in Audience has ended; return their number.

    Where none is left, Audience refuses by its own clock.

    Raises: DatabaseUnavailable.
    """
    refreshed_count, after = 0, None
    while True:
        now = ctx.clock.now()
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            places = await audience_entitlements.list_with_successor(
                tx, now=now, card_now=now - CARD_GRACE, after=after, limit=_AT_ONCE
            )
        for place in places:
            await _refresh(ctx, place)
        refreshed_count += len(places)
        if len(places) < _AT_ONCE:
            return refreshed_count
        after = places[-1]


async def refresh_plan(ctx: Context, *, plan_id: str) -> int:
    """Make a plan's quota that of every organisation that measures under it; return the number of organisations.

    Codes need no refreshing, because issuance reads the plan. Safe to repeat.

    Raises: DatabaseUnavailable, whereupon the job is retried.
    """
    refreshed_count, after = 0, ""
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            holders = await subscriptions.list_holders(tx, plan_id, after=after, limit=_AT_ONCE)
        for holder in holders:
            for mode in get_args(EntitledMode):
                await _refresh(ctx, EntitlementPlace(holder.organization_id, mode))
        refreshed_count += len(holders)
        if len(holders) < _AT_ONCE:
            return refreshed_count
        after = holders[-1].organization_id


async def _refresh(ctx: Context, place: EntitlementPlace) -> None:
    async with ctx.db.transaction(tenant=place.organization_id) as tx:
        is_open = await organizations.hold_open(tx, place.organization_id)
        await subscriptions.lock_all(tx, place.organization_id)
        await refresh_entitlement(ctx, tx, place.organization_id, place.mode, is_open=is_open, now=ctx.clock.now())
