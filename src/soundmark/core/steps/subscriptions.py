"""What verified payments make of subscriptions, and the entitlements that follow from them."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardSubscription
from soundmark.core.domain.billing.catalog import Plan, Product
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.domain.billing.paid_through import SoldPrices, is_latest_paid, move_paid_through
from soundmark.core.domain.billing.subscription import (
    CARD_STATUS_EVENTS,
    LIVE,
    SUBSCRIPTION_PREFIX,
    Subscription,
    find_next_status,
)
from soundmark.core.domain.tenancy.scope import SYSTEM
from soundmark.core.steps import audit
from soundmark.core.steps.entitlement import refresh_entitlement
from soundmark.core.store.billing import plans, subscriptions
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.kit.text.months import add_months, day_of
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import EntitledMode

REFRESH_PLAN: Final = "refresh_plan"  # The job that carries a plan's new quota to Audience; its argument is `plan_id`.

_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PrepaidPeriod:
    """The months that one payment has added to a prepaid subscription."""

    subscription: Subscription
    begins_at: datetime
    ends_at: datetime


async def apply_card(
    ctx: Context,
    tx: Tx,
    checkout: Checkout,
    state: CardSubscription,
    *,
    sold: SoldPrices,
    event_at: datetime | None,
    now: datetime,
) -> Subscription | None:
    """Make the card subscription of a locked checkout what the provider says that it is; return it.

    `sold` has the plan of each price that `list_prices` finds in `state`, as far as we sell it. `event_at` is the time
    of the event that led to reading `state`, None if no event did. An older event than the newest one changes nothing,
    and the subscription is returned as it is. Return None if the provider's status means nothing to us, or if the
    organisation is being deleted and `state` would grant something.

    The caller holds the organisation, whether it is being deleted or not, and then has locked the checkout. Safe to
    repeat. Lock order: docs/locks.md.
    """
    is_open = await organizations.hold_open(tx, checkout.organization_id)
    await subscriptions.lock_all(tx, checkout.organization_id)
    current = await subscriptions.find_by_reference(tx, checkout.organization_id, state.reference)
    if current is not None and _is_older(event_at, current):
        return current
    event = CARD_STATUS_EVENTS.get(state.status, "card_other")
    status = find_next_status(None if current is None else current.status, event, is_closing=not is_open)
    if status is None:
        if event != "card_other" and not is_open:
            await _note_during_closure(ctx, tx, checkout, state, current, sold, now=now)
        return None
    known = current or _make_subscription(ctx, checkout, provider_reference=state.reference, now=now)
    plan = await _find_plan(tx, checkout, known, state, sold)
    # What is over keeps what it was paid through.
    paid = move_paid_through(known, state, sold) if status in LIVE or current is None else known
    changed = replace(
        paid,
        plan_id=plan.id,
        product=plan.product,
        audience_mode=_mode_of(plan.product),
        status=status,
        current_period_end=state.current_period_end or known.current_period_end,
        cancel_at_period_end=state.cancel_at_period_end,
        last_event_at=_later(event_at, known.last_event_at),
        updated_at=now,
    )
    return await store_subscription(ctx, tx, current, changed, is_open=is_open, now=now)


async def extend_prepaid(ctx: Context, tx: Tx, checkout: Checkout, *, now: datetime) -> PrepaidPeriod | None:
    """Add the months of a locked checkout, whose payment was verified, to what is prepaid of its plan; return them.

    If a prepaid subscription of the plan still entitles, it is extended from its end; otherwise there is a new one.
    Return None if the organisation is being deleted.

    The caller holds the organisation, whether it is being deleted or not, then has locked the checkout, which is not
    completed yet, and completes it in the same transaction. Lock order: docs/locks.md.
    """
    assert checkout.status != "completed", "a payment is counted once"
    assert checkout.entitlement_months is not None, "a checkout of the local provider has months"
    is_open = await organizations.hold_open(tx, checkout.organization_id)
    if not is_open:
        _warn_of_closure(checkout)
        return None
    await subscriptions.lock_all(tx, checkout.organization_id)
    current = await subscriptions.find_prepaid(tx, checkout.organization_id, checkout.plan_id)
    if current is not None and not current.entitles(now):
        await end_subscription(ctx, tx, current, is_open=is_open, now=now)
        current = None
    known = current or _make_subscription(ctx, checkout, provider_reference=None, now=now)
    begins_at = now if current is None else current.paid_through
    assert begins_at is not None, "what is prepaid has an end"
    # The first day of the first period is kept: 31 January and twice one month is 31 March.
    ends_at = add_months(begins_at, checkout.entitlement_months, anchor_day=day_of(known.created_at).day)
    changed = replace(known, status="active", current_period_end=ends_at, paid_through=ends_at, updated_at=now)
    stored = await store_subscription(ctx, tx, current, changed, is_open=is_open, now=now)
    return PrepaidPeriod(stored, begins_at, ends_at)


async def end_subscription(
    ctx: Context, tx: Tx, subscription: Subscription, *, is_open: bool, now: datetime
) -> Subscription:
    """Expire a contract or a prepaid subscription whose period is over.

    The caller has taken `subscriptions.lock_all`. Lock order: docs/locks.md.
    """
    status = find_next_status(subscription.status, "period_over", is_closing=not is_open)
    assert status is not None, "it is live"
    expired = replace(subscription, status=status, updated_at=now)
    return await store_subscription(ctx, tx, subscription, expired, is_open=is_open, now=now)


async def store_subscription(
    ctx: Context, tx: Tx, before: Subscription | None, after: Subscription, *, is_open: bool, now: datetime
) -> Subscription:
    """Store a subscription and return it as it is stored. `before` is None for a new one.

    If its terms changed, the change is audited and the entitlement that follows from it is refreshed.

    The caller has taken `subscriptions.lock_all`. Lock order: docs/locks.md.
    """
    if before is not None and before.has_same_terms(after):
        unchanged = replace(after, updated_at=before.updated_at)
        if unchanged != before:
            await subscriptions.update(tx, unchanged)
        return unchanged
    if before is None:
        await subscriptions.insert(tx, after)
    else:
        await subscriptions.update(tx, after)
    for mode in _modes_of(before, after):
        await refresh_entitlement(ctx, tx, after.organization_id, mode, is_open=is_open, now=now)
    await _record(ctx, tx, after, now=now)
    return after


async def _note_during_closure(
    ctx: Context,
    tx: Tx,
    checkout: Checkout,
    state: CardSubscription,
    current: Subscription | None,
    sold: SoldPrices,
    *,
    now: datetime,
) -> None:
    """Grant nothing. Store only whether the subscription renews itself, which the gates of the closure judge."""
    if current is None or current.status not in LIVE:
        _warn_of_closure(checkout)
        return
    paid_through = move_paid_through(current, state, sold).paid_through
    if _later(paid_through, current.paid_through) != current.paid_through:
        _warn_of_closure(checkout)
    noted = replace(current, cancel_at_period_end=state.cancel_at_period_end, updated_at=now)
    await store_subscription(ctx, tx, current, noted, is_open=False, now=now)


def _warn_of_closure(checkout: Checkout) -> None:
    """Warn the operator that an organisation paid while it was being deleted."""
    _log.warning("payment_during_closure", organization_id=checkout.organization_id, checkout_id=checkout.id)


def _make_subscription(
    ctx: Context, checkout: Checkout, *, provider_reference: str | None, now: datetime
) -> Subscription:
    return Subscription(
        organization_id=checkout.organization_id,
        id=mint(ctx.entropy, SUBSCRIPTION_PREFIX),
        plan_id=checkout.plan_id,
        product=checkout.product,
        audience_mode=_mode_of(checkout.product),
        provider=checkout.provider,
        status="active",
        current_period_end=None,
        paid_through=None,
        cancel_at_period_end=False,
        monthly_quota=None,
        checkout_id=checkout.id,
        provider_reference=provider_reference,
        contract_reference=None,
        last_event_at=None,
        created_at=now,
        updated_at=now,
    )


async def _find_plan(
    tx: Tx, checkout: Checkout, known: Subscription, state: CardSubscription, sold: SoldPrices
) -> Plan:
    """Return the plan of the subscription's price: the checkout's own if it has that price, else one that we sell.

    The plan stays while nobody knows the price, and while a larger one, or one of another product, is not paid.
    """
    plan_ids = [sold[price] for price in state.prices if price in sold]
    if not plan_ids:
        _log.warning("card_price_unknown", organization_id=checkout.organization_id, checkout_id=checkout.id)
    plan_id = checkout.plan_id if checkout.price_reference in state.prices else next(iter(plan_ids), known.plan_id)
    plan = await _get_plan(tx, plan_id)
    if plan.id == known.plan_id or is_latest_paid(state):
        return plan
    current = await _get_plan(tx, known.plan_id)
    is_larger = plan.product != current.product or plan.monthly_quota > current.monthly_quota
    return current if is_larger else plan


async def _get_plan(tx: Tx, plan_id: str) -> Plan:
    plan = await plans.find(tx, plan_id)
    assert plan is not None, "no plan is ever deleted"
    return plan


def _mode_of(product: Product) -> EntitledMode | None:
    """Return the mode of integrations that a payment for the product enables."""
    return "self_service" if product == "audience" else None


def _modes_of(*states: Subscription | None) -> list[EntitledMode]:
    modes = {state.audience_mode for state in states if state is not None}
    return sorted(mode for mode in modes if mode is not None)


def _is_older(event_at: datetime | None, subscription: Subscription) -> bool:
    newest = subscription.last_event_at
    return event_at is not None and newest is not None and event_at < newest


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((each for each in (one, other) if each is not None), default=None)


async def _record(ctx: Context, tx: Tx, subscription: Subscription, *, now: datetime) -> None:
    end, paid_through = subscription.current_period_end, subscription.paid_through
    await audit.record_as(
        tx,
        SYSTEM,
        ctx.entropy,
        "billing.entitlement_changed",
        organization_id=subscription.organization_id,
        now=now,
        subscription_id=subscription.id,
        product=subscription.product,
        plan_id=subscription.plan_id,
        status=subscription.status,
        current_period_end=end and format_timestamp(end),
        paid_through=paid_through and format_timestamp(paid_through),
        cancel_at_period_end=subscription.cancel_at_period_end,
    )
