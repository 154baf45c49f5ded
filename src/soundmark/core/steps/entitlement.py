"""Entitling an organisation to issue Codes and to measure."""

from datetime import datetime
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.audience.integration import Entitlement
from soundmark.core.domain.tenancy.scope import Actor
from soundmark.core.steps import audit
from soundmark.core.store.audience import entitlements as audience_entitlements
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
        organization_id,
        actor,
        ctx.entropy,
        action="billing.entitlement_changed",
        now=ctx.clock.now(),  # Read after the wait for issuances.
        metadata={
            "product": "codes",
            "monthly_code_quota": monthly_code_quota,
            "ends_at": ends_at and format_timestamp(ends_at),
        },
    )


async def entitle_to_measure(
    ctx: Context,
    tx: Tx,
    organization_id: str,
    mode: EntitledMode,
    *,
    monthly_event_quota: int,
    ends_at: datetime | None,
    actor: Actor,
) -> Entitlement:
    """Entitle an organisation, which the caller holds open, to measure in a mode; a job tells Audience."""
    now = ctx.clock.now()
    entitlement = await audience_entitlements.insert_or_update(
        tx, organization_id, mode, monthly_event_quota=monthly_event_quota, ends_at=ends_at, now=now
    )
    await audit.record_as(
        tx,
        organization_id,
        actor,
        ctx.entropy,
        action="billing.entitlement_changed",
        now=now,
        metadata={
            "product": "audience",
            "mode": mode,
            "monthly_event_quota": monthly_event_quota,
            "ends_at": ends_at and format_timestamp(ends_at),
            "revision": entitlement.revision,
        },
    )
    await ctx.queue.defer(
        tx,
        PROJECT_ENTITLEMENT,
        lock=f"{PROJECT_ENTITLEMENT}:{organization_id}:{mode}",
        organization_id=organization_id,
        mode=mode,
    )
    return entitlement
