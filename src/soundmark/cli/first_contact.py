"""The first connection of a command: if nothing answers, the command fails at once instead of retrying."""

from typing import Final

import httpx2
from soundmark_sdk.http_exchange import new_transport
from soundmark_sdk.network_failures import could_not_connect, explain_network_failure

from soundmark.cli import Refused
from soundmark.cli.intents import printable

_ADVICE: Final = "Start it, or name another with --base-url or --data-dir."


class FirstContact(httpx2.AsyncBaseTransport):
    """A transport that ends the command if the service was never reached; the client retries later failures."""

    def __init__(self, base_url: str, advice: str = _ADVICE) -> None:
        """Connect to `base_url`; `advice` names the options with which the command reaches another service."""
        self._base_url: Final = base_url
        self._advice: Final = advice
        self._inner: Final = new_transport(base_url)
        self._reached = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises: Refused if no connection was ever made.
        """
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.HTTPError as error:
            if could_not_connect(error) and not self._reached:
                reason = explain_network_failure(self._base_url, error)
                raise Refused(f"{printable(reason)} {self._advice}") from None
            self._reached = True
            raise
        self._reached = True
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()
