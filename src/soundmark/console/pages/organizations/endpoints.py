"""Whether webhook endpoints take their messages, as far as their latest deliveries tell."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from soundmark_sdk.client import ClientFailure
from soundmark_sdk.client.records import WebhookDelivery, WebhookEndpoint

from soundmark.console.visit import Visit

# Core shows the deliveries of one endpoint a call. An organisation has at most 20 endpoints: contract, section 9.
_LOOKS_AT_ONCE: Final = 5
_LOOKED_AT_S: Final = 2.0  # A part of a page has longer: what is switched off is always named.
_DELIVERIES_MAX: Final = 20
# It says that a person or the service switched the endpoint off meanwhile.
_NO_ATTEMPT: Final = "endpoint_disabled"


@dataclass(frozen=True, slots=True)
class CheckedEndpoint:
    """An endpoint, and why its latest attempt failed; None if it did not, or while there was none.

    It `is_checked` unless its deliveries could not be read, or not in time.
    """

    endpoint: WebhookEndpoint
    failure: str | None = None
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class EndpointCheck:
    """The endpoints of an organisation."""

    data: tuple[CheckedEndpoint, ...]

    @property
    def is_complete(self) -> bool:
        """Whether it is known of each how it fares."""
        return all(each.is_checked for each in self.data)


async def check_endpoints(visit: Visit) -> EndpointCheck:
    """Return the endpoints of an organisation, and how those that are on fare.

    Raises: soundmark_sdk.ClientFailure if there is no list of them.
    """
    endpoints = (await visit.core.webhooks.page()).data
    checked = {each.id: CheckedEndpoint(each, is_checked=not each.enabled) for each in endpoints}
    looks = asyncio.Semaphore(_LOOKS_AT_ONCE)

    async def look(endpoint: WebhookEndpoint) -> None:
        async with looks:
            with contextlib.suppress(ClientFailure):
                recent = await visit.core.webhooks.deliveries_page(endpoint.id, limit=_DELIVERIES_MAX)
                checked[endpoint.id] = CheckedEndpoint(endpoint, _find_failure(recent.data))

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LOOKED_AT_S):
            await asyncio.gather(*(look(each) for each in endpoints if each.enabled))
    return EndpointCheck(tuple(checked.values()))


def _find_failure(deliveries: Sequence[WebhookDelivery]) -> str | None:
    """Return why the newest delivery that was attempted failed, or None if it arrived or nothing was attempted."""
    attempted = (each for each in deliveries if each.attempts and each.last_error != _NO_ATTEMPT)
    newest = next(attempted, None)
    return None if newest is None or newest.status == "delivered" else newest.last_error
