"""What an organisation may issue and measure, as it follows from its subscriptions and its operator."""

from datetime import datetime
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.audience.integration import Entitlement
from soundmark.core.domain.billing.subscription import find_best
from soundmark.core.domain.tenancy.scope import Actor
from soundmark.core.steps import audit
from soundmark.core.store.audience import entitlements as audience_entitlements
from soundmark.core.store.billing import subscriptions
from soundmark.core.store.codes import code_entitlements
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import EntitledMode

PROJECT_ENTITLEMENT: Final = "project_entitlement"


async def entitle_to_issue(
    ctx: Context,
    tx: Tx,
    organization_id: str,
    *,
    monthly_code_quota: int,
    ends_at: datetime | None,
    actor: Actor,
) -> None:
    """Set the least Codes quota of an organisation, which the caller holds open."""
    await code_entitlements.update_floor(tx, organization_id, monthly_quota=monthly_code_quota, ends_at=ends_at)
    await audit.record_as(
        tx,
        actor,
        ctx.entropy,
        "billing.entitlement_changed",
        organization_id=organization_id,
        now=ctx.clock.now(),  # Read after the wait for issuances.
        product="codes",
        monthly_code_quota=monthly_code_quota,
        ends_at=ends_at and format_timestamp(ends_at),
    )


async def refresh_entitlement(
    ctx: Context, tx: Tx, organization_id: str, mode: EntitledMode, *, is_open: bool, now: datetime
) -> Entitlement | None:
    """Make the entitlement to a mode what the organisation's subscriptions say at `now`; a job carries it to Audience.

    Of several subscriptions that entitle, the one with the highest quota counts. If none does, or the organisation is
    being deleted, the entitlement ends at `now`, if it has not ended before. Return it, even if it has ended; None if
    there never was one.

    The caller has taken `subscriptions.lock_all`. Lock order: docs/locks.md.
    """
    await subscriptions.hold_plans(tx, organization_id, mode)
    live = await subscriptions.list_live_quotas(tx, organization_id, mode)
    best = find_best(live, now) if is_open else None
    current = await audience_entitlements.find(tx, organization_id, mode)
    if best is not None:
        monthly_event_quota, ends_at = best.monthly_quota, best.ends_at
    elif current is None or not current.holds(now):
        return current
    else:
        monthly_event_quota, ends_at = current.monthly_event_quota, now
    if current is not None and (current.monthly_event_quota, current.ends_at) == (monthly_event_quota, ends_at):
        return current
    entitlement = await audience_entitlements.insert_or_update(
        tx, organization_id, mode, monthly_event_quota=monthly_event_quota, ends_at=ends_at, now=now
    )
    await ctx.queue.defer(
        tx,
        PROJECT_ENTITLEMENT,
        lock=f"{PROJECT_ENTITLEMENT}:{organization_id}:{mode}",
        organization_id=organization_id,
        mode=mode,
    )
    return entitlement
