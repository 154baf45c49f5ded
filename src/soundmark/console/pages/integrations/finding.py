"""Finding one integration: the API lists them, newest first."""

from soundmark_sdk.client.records import Integration

from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit


async def find_integration(visit: Visit) -> Integration:
    """Return the integration in the URL.

    Raises: TenantUnknown. soundmark_sdk.ClientFailure.
    """
    integration_id = visit.parameter("integration_id")
    listed = visit.core.integrations.list()
    async for integration in listed:
        if integration.id == integration_id:
            return integration
    raise TenantUnknown
