"""The route of the card provider's portal."""

from typing import Annotated

from pydantic import Field

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, Tenant
from soundmark.core.features.billing.portal import service
from soundmark.core.problems import CustomerUnavailable, PaymentProviderUnavailable
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
    return PortalView(portal_url=await service.open_portal(ctx, scope))
