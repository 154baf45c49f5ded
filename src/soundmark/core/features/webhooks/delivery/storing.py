"""Storing what followed from attempts, and disabling endpoints."""

from collections.abc import Sequence
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.scope import SYSTEM
from soundmark.core.domain.webhooks.attempt import FAILING_FOR, AttemptOutcome
from soundmark.core.domain.webhooks.endpoint import DisabledReason
from soundmark.core.steps import audit
from soundmark.core.store.tenancy import audit_chain
from soundmark.core.store.webhooks import dispatch
from soundmark.kit.postgres.transaction import Tx

TELL: Final = "tell_owners_of_failing_endpoint"
_log: Final = structlog.get_logger()


async def store_outcomes(ctx: Context, organization_id: str, outcomes: Sequence[AttemptOutcome]) -> None:
    """Store the outcomes of one organisation's attempts in one transaction, and disable endpoints that ask for it.

    Deliveries, endpoints and organisations that were deleted in the meantime are left out.

    Raises: DatabaseUnavailable.
    """
    succeeded = {outcome.delivery.endpoint_id for outcome in outcomes if outcome.is_success}
    failed = {outcome.delivery.endpoint_id for outcome in outcomes} - succeeded
    to_disable: dict[tuple[str, str], DisabledReason] = {}
    for outcome in outcomes:
        endpoint_id, reason = outcome.delivery.endpoint_id, outcome.disables
        if reason == "gone" or (reason == "failing" and endpoint_id in failed):
            to_disable.setdefault((endpoint_id, outcome.delivery.url), reason)
    now = ctx.clock.now()
    async with ctx.db.transaction(tenant=organization_id) as tx:
        await dispatch.update_attempted(tx, organization_id, outcomes)
        if failed:
            await dispatch.update_failing(tx, organization_id, sorted(failed), now=now)
        if succeeded:
            await dispatch.update_recovered(tx, organization_id, sorted(succeeded))
        for (endpoint_id, url), reason in sorted(to_disable.items()):
            await _disable(ctx, tx, organization_id, endpoint_id, url, reason)


async def _disable(
    ctx: Context, tx: Tx, organization_id: str, endpoint_id: str, url: str, reason: DisabledReason
) -> None:
    if not await audit_chain.hold_tenant(tx, organization_id):
        return  # It is being deleted. Otherwise a later attempt finds the same.
    failing_since_max = ctx.clock.now() - FAILING_FOR
    if not await dispatch.update_endpoint_disabled(
        tx, organization_id, endpoint_id, url=url, reason=reason, failing_since_max=failing_since_max
    ):
        return
    await audit.record_as(
        tx,
        SYSTEM,
        ctx.entropy,
        "webhook_endpoint.updated",
        organization_id=organization_id,
        now=ctx.clock.now(),
        endpoint_id=endpoint_id,
        enabled=False,
        disabled_reason=reason,
    )
    if reason == "failing":
        await ctx.queue.defer(
            tx, TELL, lock=f"webhooks/{endpoint_id}", organization_id=organization_id, endpoint_id=endpoint_id
        )
    _log.info("webhook_endpoint_disabled", endpoint_id=endpoint_id, reason=reason)
