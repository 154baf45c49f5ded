"""The client for asyncio."""

from typing import Self

import httpx2

from soundmark_sdk.client.async_groups import AsyncGroups
from soundmark_sdk.client.exchange import Credential, Target
from soundmark_sdk.client.issuing import Issuer
from soundmark_sdk.client.recovery import MemoryRecoveryStore, RecoveryStore
from soundmark_sdk.client.sender import AsyncSender, Limits, TenantIds
from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.http_exchange import check_base_url

# Shorter than the five seconds after which uvicorn, like many servers, hangs up on an idle connection.
_IDLE_S = 2.0


class AsyncClient(AsyncGroups):
    """A client of one service with one credential, for one event loop; safe for any number of concurrent calls.

    `credential` is a server key (`xak_…`), an access token, or a function that returns, at once, the one to use now.
    It goes over https only (plain http: loopback), is never shown, and redirects are not followed. A call that names no
    organisation or project is about `organization_id` and `project_id`, or those of the server key. `timeout_s` bounds
    each request from connecting to the last byte, `download_timeout_s` those that write a file. `attempts_max` and
    `retry_wait_max_s` bound what one call sends and waits; only what is safe to repeat is repeated. `recovery` is where
    issuances are remembered until they are answered.
    """

    def __init__(  # noqa: PLR0913 - each is a setting with a default, given by name
        self,
        base_url: str,
        credential: Credential,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        recovery: RecoveryStore | None = None,
        timeout_s: float = 15.0,
        download_timeout_s: float = 300.0,
        attempts_max: int = 6,
        retry_wait_max_s: float = 30.0,
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError for an address that is not https, an impossible credential, or a senseless limit."""
        limits = Limits(timeout_s, download_timeout_s, attempts_max, retry_wait_max_s)
        address = check_base_url(base_url, allow_insecure_http=allow_insecure_http)
        used = Target(address, credential, transport or new_transport())
        if isinstance(credential, str):
            used.secret()
        time = SystemClock() if clock is None else clock
        issuer = Issuer(MemoryRecoveryStore() if recovery is None else recovery, time, address)
        super().__init__(AsyncSender(used, limits, time, issuer, TenantIds(organization_id, project_id)))
        self._address = address

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A closed client calls nothing any more."""
        await self._sender.aclose()


def new_transport() -> httpx2.AsyncHTTPTransport:
    """Return a transport that never sends on a connection which the service may be closing."""
    return httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=100, keepalive_expiry=_IDLE_S))
