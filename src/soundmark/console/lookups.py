"""What the pages of several areas look up."""

from collections.abc import Sequence
from typing import Final

from soundmark_sdk.client.records import Integration, Subscription

from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

# As in the contract, section 7, "What entitles".
_LIVE: Final = frozenset({"trialing", "active", "past_due"})


async def find_integration(visit: Visit) -> Integration:
    """Return the integration in the URL.

    Raises: TenantUnknown. soundmark_sdk.ClientFailure.
    """
    integration_id = visit.parameter("integration_id")
    async for integration in visit.core.integrations.list():
        if integration.id == integration_id:
            return integration
    raise TenantUnknown


def find_live(subscriptions: Sequence[Subscription]) -> list[Subscription]:
    """Return the subscriptions that may entitle."""
    return [each for each in subscriptions if each.status in _LIVE]
