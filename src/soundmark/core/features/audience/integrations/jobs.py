"""Jobs that settle audit intents after a crash, and send entitlements to Audience."""

from datetime import timedelta
from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.audit import AuditIntent, FinalOutcome, IntentAction
from soundmark.core.features.audience.integrations.core_keys import request_push
from soundmark.core.features.audience.integrations.names import settle_name
from soundmark.core.problems import AudienceUnavailable
from soundmark.core.steps.entitlement import PROJECT_ENTITLEMENT
from soundmark.core.store.audience import entitlements as audience_entitlements
from soundmark.core.store.tenancy import audit as entries
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.jobs import add_deferred, add_periodic
from soundmark.kit.text.paging import Position
from soundmark.wire.shape import EntitledMode

SETTLED_AFTER: Final = timedelta(minutes=1)  # The longest deadline: later, no request still waits.
# After Core has given up, a deletion may continue in Audience for as long as its statements may take there.
NOT_DONE_AFTER: Final = timedelta(minutes=5)
_AT_ONCE: Final = 100
_FAILED_IN_A_ROW_MAX: Final = 3  # Each failure may take the whole deadline.
_GIVING_A_KEY: Final[frozenset[IntentAction]] = frozenset(
    {"audience.integration_core_key_update", "audience.integration_provisioning"}
)

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` settle intents and send entitlements."""
    add_periodic(app, ctx, "settle_audit_intents", "* * * * *", settle_intents)
    add_deferred(app, ctx, PROJECT_ENTITLEMENT, project_entitlement)


async def settle_intents(ctx: Context) -> int:
    """Settle audit intents that were left `requested`; return how many were settled.

    Audience reports for each operation id whether it carried out the operation. If so, the intent is `completed`, even
    if Audience's response was lost; otherwise it is `failed`, once the operation can no longer be in progress. Safe at
    any time and concurrently, also with the request itself, because the first outcome stays. Stops if Audience fails
    for several intents in a row; a single failure does not delay the others.

    Raises: DatabaseUnavailable.
    Source: API v1, "Lifecycle audit intents".
    """
    settled_count, failed_count, after = 0, 0, None
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            intents = await entries.list_requested(
                tx, before=ctx.clock.now() - SETTLED_AFTER, after=after, limit=_AT_ONCE
            )
        for intent in intents:
            try:
                settled_count += await _settle(ctx, intent)
            except AudienceUnavailable:
                failed_count += 1
                if failed_count == _FAILED_IN_A_ROW_MAX:
                    return settled_count
            else:
                failed_count = 0
        if len(intents) < _AT_ONCE:
            return settled_count
        after = Position(intents[-1].created_at, intents[-1].id)


async def _settle(ctx: Context, intent: AuditIntent) -> bool:
    integration_id = await ctx.audience.find_applied(intent.id, request_id=intent.id)
    is_applied = integration_id is not None
    now = ctx.clock.now()
    if not is_applied and now - intent.created_at < NOT_DONE_AFTER:
        return False
    outcome: FinalOutcome = "completed" if is_applied else "failed"
    if is_applied and intent.action in _GIVING_A_KEY:
        await request_push(ctx)
    async with ctx.db.transaction(tenant=intent.organization_id) as tx:
        await settle_name(tx, intent, integration_id)
        is_settled = await entries.update_outcome(tx, intent, outcome=outcome, now=now)
    _log.info("audit_intent_settled", entry_id=intent.id, action=intent.action, outcome=outcome)
    return is_settled


async def project_entitlement(ctx: Context, *, organization_id: str, mode: EntitledMode) -> None:
    """Send the organisation's current entitlement to Audience; if it is being deleted, as one that has ended.

    Safe to run late, repeatedly and in any order: the entitlement is read now, and Audience keeps the latest revision.

    Raises: AudienceUnavailable, whereupon the job is retried; DatabaseUnavailable.
    Source: API v1, "Billing", audience contracts.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        closing_at = await organizations.find_deletion_requested_at(tx, organization_id)
        entitlement = await audience_entitlements.find(tx, organization_id, mode)
    if entitlement is None:
        return  # The organisation was deleted with everything in it.
    if closing_at is not None:
        entitlement = entitlement.ended(ctx.clock.now())
    await ctx.audience.put_entitlement(organization_id, entitlement, request_id=f"{PROJECT_ENTITLEMENT}-{mode}")
    _log.info("entitlement_projected", organization_id=organization_id, mode=mode, revision=entitlement.revision)
