"""Sending events again, within the limits of an organisation."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.replay import REPLAYED_PER_DAY, REPLAYS_PER_MINUTE, ReplayCounts, find_midnight
from soundmark.core.problems import WebhookEndpointNotFound, WebhookEventNotFound
from soundmark.core.steps.tenancy import hold_authority
from soundmark.core.store.webhooks import deliveries, dispatch, endpoints, events, replay_counts
from soundmark.kit.http.responses.problems import FieldError, RateLimited, ValidationFailed
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint

# For the statement that replays, instead of the usual 30 s: a month may hold millions of events, of which a hundred
# thousand take about two seconds.
_REPLAY_TIMEOUT_S: Final = 600
_TOO_OFTEN: Final = f"An organisation can make {REPLAYS_PER_MINUTE} replays a minute. Try again in a minute."
_TOO_MANY: Final = (
    f"An organisation's replays can create {REPLAYED_PER_DAY:,} deliveries a UTC day. This one would exceed that, so "
    "it created none. Replay a shorter period."
)


async def replay_period(
    ctx: RequestContext, scope: TenantScope, endpoint_id: str, *, from_at: datetime, to_at: datetime
) -> int:
    """Send again what the endpoint matches of the events from `from_at` until before `to_at`; return their number.

    Events that it has a pending delivery of are left out.

    Raises: ValidationFailed for a period without length, and for a disabled endpoint; WebhookEndpointNotFound;
        RateLimited for one replay or one delivery too many, and then replays nothing.
    Source: contract, section 9.
    """
    if from_at >= to_at:
        raise ValidationFailed(errors=(FieldError("body", "/to", "must be after from"),))
    organization_id = scope.organization_id
    async with (
        ctx.webhook_replays.take(organization_id),
        ctx.db.transaction(tenant=organization_id, statement_timeout_s=_REPLAY_TIMEOUT_S) as tx,
    ):
        counts = await _lock_counts(ctx, tx, scope)
        now = ctx.clock.now()
        await _require_enabled(tx, scope, endpoint_id)
        _require_pause(counts, now)
        count = await deliveries.insert_replayed_period(
            tx,
            scope,
            endpoint_id,
            replay_id=mint(ctx.entropy, ""),
            from_at=from_at,
            to_at=to_at,
            now=now,
            limit=counts.count_left(now),
        )
        return await _count(tx, scope, counts, count, now=now)


async def replay_events(ctx: RequestContext, scope: TenantScope, endpoint_id: str, event_ids: Sequence[str]) -> int:
    """Send again those of the events that the endpoint matches and has no pending delivery of; return their number.

    Raises: ValidationFailed for a disabled endpoint; WebhookEndpointNotFound; WebhookEventNotFound if any is missing;
        RateLimited for one replay or one delivery too many. Then it replays nothing.
    Source: contract, section 9.
    """
    organization_id = scope.organization_id
    async with ctx.webhook_replays.take(organization_id), ctx.db.transaction(tenant=organization_id) as tx:
        counts = await _lock_counts(ctx, tx, scope)
        now = ctx.clock.now()
        await _require_enabled(tx, scope, endpoint_id)
        if await events.count_of(tx, scope, event_ids) < len(event_ids):
            raise WebhookEventNotFound
        _require_pause(counts, now)
        count = await deliveries.insert_replayed(
            tx,
            scope,
            endpoint_id,
            replay_id=mint(ctx.entropy, ""),
            event_ids=event_ids,
            now=now,
            limit=counts.count_left(now),
        )
        return await _count(tx, scope, counts, count, now=now)


async def _lock_counts(ctx: RequestContext, tx: Tx, scope: TenantScope) -> ReplayCounts:
    await hold_authority(tx, scope)
    return await replay_counts.lock(tx, scope, day=ctx.clock.now().date())


async def _require_enabled(tx: Tx, scope: TenantScope, endpoint_id: str) -> None:
    """Refuse an endpoint that gets no deliveries.

    To count them as replayed, or to keep them for the day on which it is enabled, would surprise the caller, who has to
    enable it first.
    """
    endpoint = await endpoints.find(tx, scope, endpoint_id)
    if endpoint is None:
        raise WebhookEndpointNotFound
    if not endpoint.enabled:
        raise ValidationFailed("This webhook endpoint is disabled. Enable it, then replay the events that it missed.")


def _require_pause(counts: ReplayCounts, now: datetime) -> None:
    pause = counts.find_pause(now)
    if pause is not None:
        raise _limited(_TOO_OFTEN, pause)


async def _count(tx: Tx, scope: TenantScope, counts: ReplayCounts, count: int | None, *, now: datetime) -> int:
    """Count a replay and its deliveries, which are None if there were too many, and wake the dispatchers."""
    if count is None:
        raise _limited(_TOO_MANY, find_midnight(now) - now)
    await replay_counts.update(tx, scope, counts.add(count, now))
    await dispatch.notify_due(tx)
    return count


def _limited(detail: str, after: timedelta) -> RateLimited:
    return RateLimited(detail, headers={"retry-after": str(math.ceil(after.total_seconds()))})
