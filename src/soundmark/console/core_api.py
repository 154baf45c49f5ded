"""Core's public API, as one person uses it."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeAlias

import httpx2
import msgspec
from soundmark_sdk.client import AsyncClient

from soundmark.console.call_deadline import BoundedTransport, CallDeadline
from soundmark.console.sign_in.renewal import Renew, RenewingTransport

# For all calls of a visit together, and so for each of them. A webhook endpoint under test may take 15 s to answer
# Core; nginx waits 60 s for a page.
_TIMEOUT_S: Final = 25.0
# A page waits for its calls, so a call that fails is repeated once and soon. One that took all the time is not.
_ATTEMPTS_MAX: Final = 2
_RETRY_WAIT_MAX_S: Final = 0.5

Credential: TypeAlias = str | Callable[[], str]
Tenant: TypeAlias = tuple[str | None, str | None]


class CoreReadiness(msgspec.Struct, frozen=True):
    """What Core says of itself: the names of dependencies that are unavailable, and of those that it works without."""

    status: str
    unavailable: list[str] = []
    degraded: list[str] = []


class CoreApi:
    """The connections to Core, which the clients of all sessions share."""

    def __init__(self, url: str, transport: httpx2.AsyncBaseTransport) -> None:
        self.url: Final = url.rstrip("/")
        self._transport: Final = transport

    def start_deadline(self) -> CallDeadline:
        """Return the deadline of a visit that begins now."""
        return CallDeadline(_TIMEOUT_S)

    def client(
        self, deadline: CallDeadline, credential: Credential | None, tenant: Tenant, renew: Renew | None = None
    ) -> AsyncClient:
        """Return a client with the credential of one session until a deadline; it need not be closed.

        Its calls are about `tenant`, an organisation and a project. `renew` replaces a credential that Core no longer
        accepts.
        """
        transport = self._transport if renew is None else RenewingTransport(self._transport, renew)
        return AsyncClient(
            self.url,
            credential,
            organization_id=tenant[0],
            project_id=tenant[1],
            timeout_s=_TIMEOUT_S,
            attempts_max=_ATTEMPTS_MAX,
            retry_wait_max_s=_RETRY_WAIT_MAX_S,
            # The operator who runs the console chose this address, which may be inside a private network.
            allow_insecure_http=True,
            transport=BoundedTransport(transport, deadline),
        )

    async def is_reachable(self) -> bool:
        """Return whether Core answers at all, which does not mean that its dependencies do.

        Raises: httpx2.TransportError.
        """
        request = httpx2.Request("GET", f"{self.url}/healthz")
        response = await self._transport.handle_async_request(request)
        try:
            return response.status_code == HTTPStatus.OK
        finally:
            await response.aclose()

    async def read_readiness(self, deadline: CallDeadline) -> CoreReadiness:
        """Return what Core says of itself; no answer, or none that can be read, is a state too."""
        request = httpx2.Request("GET", f"{self.url}/readyz")
        try:
            response = await BoundedTransport(self._transport, deadline).handle_async_request(request)
            try:
                return msgspec.json.decode(await response.aread(), type=CoreReadiness)
            finally:
                await response.aclose()
        except (httpx2.TransportError, msgspec.MsgspecError):
            return CoreReadiness(status="unreachable")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()
