"""Commands on usage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from soundmark.core.context import Context
from soundmark.core.domain.billing.subscription import list_quotas
from soundmark.core.domain.codes.quota import Quota
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import AudienceUnavailable
from soundmark.core.store.audience import cells
from soundmark.core.store.billing import subscriptions
from soundmark.core.store.codes import code_entitlements, code_usage
from soundmark.kit.text.months import month_of
from soundmark.wire.audience_limits import DEMO_EVENTS_MAX
from soundmark.wire.private.measurements import ModeUsage
from soundmark.wire.shape import AudienceMode, EntitledMode


@dataclass(frozen=True, slots=True)
class ModeMeasurement:
    """The events of one mode in a month, and its quota."""

    mode: AudienceMode
    events: int
    active_integrations: int
    monthly_quota: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What an organisation used in a month; `audience` is None if Audience was unavailable."""

    codes: Quota
    audience: Sequence[ModeMeasurement] | None


async def read_usage(ctx: Context, scope: TenantScope, *, request_id: str) -> Usage:
    """Read the organisation's quotas of this calendar month, and how much of them it used.

    Core's own figures are of one moment. The organisation's cell is called afterwards, if it has one; if it is
    unavailable, the rest is answered.

    Source: API v1, "Usage".
    """
    now = ctx.clock.now()
    month = month_of(now)
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        entitlement = await code_entitlements.get(tx, scope.organization_id)
        issued_count = await code_usage.count_issued(tx, scope.organization_id, month)
        live = await subscriptions.list_live_quotas(tx, scope.organization_id, None)
        codes = Quota(entitlement.monthly_quota(now, subscribed=list_quotas(live, now)), issued_count, now)
        entitled = {
            mode: list_quotas(await subscriptions.list_live_quotas(tx, scope.organization_id, mode), now)
            for mode in get_args(EntitledMode)
        }
        cell = await cells.find(tx, scope.organization_id)
    if cell is None:
        return Usage(codes, _merge_modes([], entitled))
    try:
        used = await ctx.cells.open(cell).read_usage(scope.organization_id, month.name, request_id=request_id)
    except AudienceUnavailable:
        return Usage(codes, None)
    return Usage(codes, _merge_modes(used, entitled))


def _merge_modes(used: Sequence[ModeUsage], entitled: Mapping[EntitledMode, Sequence[int]]) -> list[ModeMeasurement]:
    """Return each mode that the organisation uses or is entitled to."""
    quotas: dict[AudienceMode, int] = {"demo": DEMO_EVENTS_MAX, "contract": 0, "self_service": 0}
    quotas |= {mode: max(highest, default=0) for mode, highest in entitled.items()}
    known = {each.mode: each for each in used}
    measured = [
        ModeMeasurement(mode, known[mode].events, known[mode].active_integrations, quota)
        if mode in known
        else ModeMeasurement(mode, 0, 0, quota)
        for mode, quota in quotas.items()
    ]
    return [each for each in measured if each.events or each.active_integrations or each.monthly_quota]
