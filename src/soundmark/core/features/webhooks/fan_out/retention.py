"""Deleting events and deliveries after 30 days, and the deliveries of deleted endpoints."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.delivery import KEPT
from soundmark.core.store.webhooks import retention
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx

_AT_ONCE: Final = 2_000  # Some 50 ms.
_ALWAYS: Final = datetime.max.replace(tzinfo=UTC)
_log: Final = structlog.get_logger()


async def forget_events(ctx: Context) -> int:
    """Delete events and deliveries that are more than 30 days old; return how many. Safe at any time, concurrently.

    An event stays while a delivery of it is pending, which ends within two days.

    Raises: DatabaseUnavailable.
    Source: contract, section 9.
    """
    older_than = ctx.clock.now() - KEPT
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        organization_ids = await retention.list_tenants(tx, older_than=older_than)
    count = 0
    for organization_id in organization_ids:
        async with ctx.db.transaction(tenant=organization_id) as tx:
            endpoint_ids = await retention.list_endpoint_ids(tx, organization_id)
        for endpoint_id in endpoint_ids:
            count += await _delete_deliveries(ctx, organization_id, endpoint_id, older_than)
        delete = partial(
            retention.delete_events, organization_id=organization_id, older_than=older_than, limit=_AT_ONCE
        )
        count += await _repeat(ctx, organization_id, delete)
    if count:
        _log.info("webhook_events_forgotten", count=count)
    return count


async def drop_abandoned(ctx: Context) -> int:
    """Delete the deliveries of deleted endpoints; return how many. Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        abandoned = await retention.list_abandoned(tx)
    return sum([await _delete_deliveries(ctx, each.organization_id, each.endpoint_id, _ALWAYS) for each in abandoned])


async def _delete_deliveries(ctx: Context, organization_id: str, endpoint_id: str, older_than: datetime) -> int:
    delete = partial(
        retention.delete_deliveries,
        organization_id=organization_id,
        endpoint_id=endpoint_id,
        older_than=older_than,
        limit=_AT_ONCE,
    )
    return await _repeat(ctx, organization_id, delete)


async def _repeat(ctx: Context, organization_id: str, delete: Callable[[Tx], Awaitable[int]]) -> int:
    """Run `delete` in transactions of its own until it deletes fewer rows than it might; return the number of rows."""
    count = 0
    while True:
        async with ctx.db.transaction(tenant=organization_id) as tx:
            deleted = await delete(tx)
        count += deleted
        if deleted < _AT_ONCE:
            return count
