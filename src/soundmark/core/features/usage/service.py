"""What an organisation has used."""

from soundmark.core.context import Context
from soundmark.core.domain.quota import Quota, month_of
from soundmark.core.domain.scope import TenantScope
from soundmark.core.store import code_entitlements, code_usage


async def read_usage(ctx: Context, scope: TenantScope) -> Quota:
    """What the organisation may issue in this calendar month, and what it has issued in it, as of one moment.

    Source: API v1, "Usage".
    """
    now = ctx.clock.now()
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        monthly_quota = await code_entitlements.find_monthly_quota(tx, scope.organization_id)
        issued_count = await code_usage.count_issued(tx, scope.organization_id, month_of(now))
        return Quota(monthly_quota, issued_count, now)
