"""The route of the card provider's portal."""

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, Tenant
from soundmark.core.features.billing.portal import service
from soundmark.core.features.billing.portal.wire import PortalView
from soundmark.core.problems import CustomerUnavailable, PaymentProviderUnavailable

operations = Operations("Billing")


@operations.add(
    "POST",
    "/v1/billing/portal",
    Operation("portal.open", problems=(CustomerUnavailable, PaymentProviderUnavailable)),
    example=PortalView(portal_url="https://billing.example.com/p/session/9dK2x0vT"),
)
async def open_portal(ctx: Ctx, scope: Tenant) -> PortalView:
    """Return a temporary page of the card provider on which the organisation can change or cancel its subscriptions."""
    return PortalView(portal_url=await service.open_portal(ctx, scope))
