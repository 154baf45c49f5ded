"""Opening the portal of the card provider."""

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import CustomerUnavailable
from soundmark.core.store.billing import card_customers


async def open_portal(ctx: Context, scope: TenantScope) -> str:
    """Return the address of a page on which the organisation manages its card subscriptions, for a short time.

    It is not stored.

    Raises: CustomerUnavailable before the first verified card payment; PaymentProviderUnavailable.
    Source: contract, section 7.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        customer = await card_customers.find(tx, scope.organization_id)
    if customer is None:
        raise CustomerUnavailable
    return await ctx.card.open_portal(customer, f"{ctx.console_url}/billing")
