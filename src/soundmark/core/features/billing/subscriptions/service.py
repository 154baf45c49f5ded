"""The query of subscriptions."""

from collections.abc import Mapping
from dataclasses import dataclass

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import AccountingState
from soundmark.core.domain.billing.subscription import ListedSubscription
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.store.billing import outbox, subscriptions
from soundmark.kit.text.paging import Page, Position, cut_page


@dataclass(frozen=True, slots=True)
class SubscriptionList:
    """A page of subscriptions, and the newest draft invoices of those that have any, by subscription."""

    page: Page[ListedSubscription]
    accounting: Mapping[str, AccountingState]


async def list_subscriptions(
    ctx: Context, scope: TenantScope, *, before: Position | None, limit: int
) -> SubscriptionList:
    """Return the subscriptions of the organisation, newest first, whatever their status.

    Source: API v1, "Billing".
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        rows = await subscriptions.list_newest_first(tx, scope.organization_id, before=before, limit=limit + 1)
        page = cut_page(rows, limit, lambda row: Position(row.created_at, row.id))
        ids = [row.id for row in page.entries]
        accounting = await outbox.find_newest_outbox(tx, scope.organization_id, ids)
    return SubscriptionList(page, accounting)
