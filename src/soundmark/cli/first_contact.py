"""The first connection of a command: where nobody answers, a person is told at once and waits for no retries."""

from typing import Final

import httpx2
from soundmark_sdk.http_exchange import new_transport
from soundmark_sdk.network_failures import could_not_connect, explain_network_failure

from soundmark.cli.errors import Refused
from soundmark.cli.intents import printable

ELSEWHERE: Final = "Start it, or name another with --base-url or --data-dir."


class FirstContact(httpx2.AsyncBaseTransport):
    """Ends the command where the service was never reached; later failures are the client's to retry."""

    def __init__(self, base_url: str) -> None:
        self._base_url: Final = base_url
        self._inner: Final = new_transport()
        self._reached = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises: Refused where no connection was ever made."""
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.HTTPError as error:
            if could_not_connect(error) and not self._reached:
                said = explain_network_failure(self._base_url, error)
                raise Refused(f"{printable(said)} {ELSEWHERE}") from None
            self._reached = True
            raise
        self._reached = True
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()
