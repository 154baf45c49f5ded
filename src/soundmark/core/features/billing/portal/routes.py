"""The route of the card provider's portal."""

from typing import Annotated

from pydantic import Field

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, Tenant
from soundmark.core.problems import CustomerUnavailable, PaymentProviderUnavailable
from soundmark.core.store.billing import card_customers
from soundmark.wire.shape import Wire


class PortalView(Wire):
    """A page of the card provider."""

    portal_url: Annotated[str, Field(description="The page. It works for a short time; do not store its address.")]


operations = Operations("Billing")


@operations.add(
    "POST",
    "/v1/billing/portal",
    Operation("portal.open", problems=(CustomerUnavailable, PaymentProviderUnavailable)),
    example=PortalView(portal_url="https://billing.example.com/p/session/9dK2x0vT"),
)
async def open_portal(ctx: Ctx, scope: Tenant) -> PortalView:
    """Return a temporary page of the card provider, where the organisation changes or cancels its subscriptions."""
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        customer = await card_customers.find(tx, scope.organization_id)
    if customer is None:
        raise CustomerUnavailable
    return PortalView(portal_url=await ctx.card.open_portal(customer, f"{ctx.console_url}/billing"))
