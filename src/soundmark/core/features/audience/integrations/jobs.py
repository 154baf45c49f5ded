"""Jobs that settle audit intents after a crash, and send entitlements to Audience."""

from collections import Counter
from datetime import timedelta
from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.audit import AuditIntent, FinalOutcome, IntentAction
from soundmark.core.features.audience.integrations.core_keys import request_push
from soundmark.core.features.audience.integrations.names import settle_creation
from soundmark.core.problems import AudienceUnavailable
from soundmark.core.steps.cells import find_audience
from soundmark.core.steps.entitlement import PROJECT_ENTITLEMENT
from soundmark.core.store.audience import cells
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
    any time and concurrently, also with the request itself, because the first outcome stays. A cell that fails for
    several intents in a row is not asked again this time; a single failure does not delay the others.

    Raises: DatabaseUnavailable.
    Source: API v1, "Lifecycle audit intents".
    """
    settled_count, after = 0, None
    failed_counts: Counter[str | None] = Counter()  # In a row, by cell.
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            intents = await entries.list_requested(
                tx, before=ctx.clock.now() - SETTLED_AFTER, after=after, limit=_AT_ONCE
            )
        for intent in intents:
            async with ctx.db.transaction(tenant=intent.organization_id) as tx:
                cell = await cells.find(tx, intent.organization_id)
            if failed_counts[cell] == _FAILED_IN_A_ROW_MAX:
                continue
            try:
                settled_count += await _settle(ctx, intent, cell)
            except AudienceUnavailable:
                failed_counts[cell] += 1
            else:
                failed_counts[cell] = 0
        if len(intents) < _AT_ONCE:
            return settled_count
        after = Position(intents[-1].created_at, intents[-1].id)


async def _settle(ctx: Context, intent: AuditIntent, cell: str | None) -> bool:
    integration_id = None
    if cell is not None:  # Deleted meanwhile otherwise: an organisation with an intent has a cell.
        integration_id = await ctx.cells.open(cell).find_applied(intent.id, request_id=intent.id)
    is_applied = integration_id is not None
    now = ctx.clock.now()
    if not is_applied and now - intent.created_at < NOT_DONE_AFTER:
        return False
    outcome: FinalOutcome = "completed" if is_applied else "failed"
    if is_applied and intent.action in _GIVING_A_KEY:
        await request_push(ctx)
    async with ctx.db.transaction(tenant=intent.organization_id) as tx:
        await settle_creation(tx, intent, integration_id)
        is_settled = await entries.update_outcome(tx, intent, outcome=outcome, now=now)
    _log.info("audit_intent_settled", entry_id=intent.id, action=intent.action, outcome=outcome)
    return is_settled


async def project_entitlement(ctx: Context, *, organization_id: str, mode: EntitledMode) -> None:
    """Send the organisation's current entitlement to its cell; if it is being deleted, as one that has ended.

    An organisation without a cell has nothing to be entitled for: its first integration takes its entitlement along.
    Safe to run late, repeatedly and in any order: the entitlement is read now, and Audience keeps the latest revision.

    Raises: AudienceUnavailable, whereupon the job is retried; DatabaseUnavailable.
    Source: API v1, "Billing", audience contracts.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        closing_at = await organizations.find_deletion_requested_at(tx, organization_id)
        entitlement = await audience_entitlements.find(tx, organization_id, mode)
        audience = await find_audience(ctx, tx, organization_id)
    if entitlement is None or audience is None:  # Perhaps the organisation was deleted with everything in it.
        return
    if closing_at is not None:
        entitlement = entitlement.ended(ctx.clock.now())
    await audience.put_entitlement(organization_id, entitlement, request_id=f"{PROJECT_ENTITLEMENT}-{mode}")
    _log.info("entitlement_projected", organization_id=organization_id, mode=mode, revision=entitlement.revision)
