"""A limit on refusals: a client IP address whose credentials are refused too often has to wait."""

from collections.abc import Iterable
from typing import Final

import structlog

from soundmark.kit.clock import Clock
from soundmark.kit.http.asgi import Scope
from soundmark.kit.http.limits.local import LimitState, RateLimit
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader
from soundmark.kit.http.responses.problems import RateLimited

_log: Final = structlog.get_logger()


class ClientAddresses:
    """A reader of client IP addresses, which returns their irreversible digests."""

    def __init__(self, reader: AddressReader, digest: AddressDigest, clock: Clock) -> None:
        self._reader: Final = reader
        self._digest: Final = digest
        self._clock: Final = clock

    def digest_of(self, scope: Scope) -> bytes:
        """Return the digest of the client IP address that a request came from, the same for an hour."""
        client = scope.get("client")
        headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
        return self._digest.of(self._reader.subject(client[0] if client else None, headers), self._clock.unix_s())

    def is_proxy(self, scope: Scope) -> bool:
        """Return whether a trusted proxy sent a request."""
        client = scope.get("client")
        return client is not None and self._reader.is_trusted(client[0])

    def describe_refused(self, scope: Scope) -> dict[str, str]:
        """Return what the log says about the client whose request was refused."""
        return {"address": self.digest_of(scope).hex()}


class RefusalLimit:
    """A counter of refusals by client IP address; it refuses every request of a client over the limit.

    Accepted requests are not counted. Clients are known by the digests of their addresses; `name` is the name of this
    limit in the log.

    Source: contract, section 2, Refused credentials.
    """

    def __init__(self, name: str, limit: RateLimit) -> None:
        self._name: Final = name
        self._limit: Final = limit

    async def check(self, client: bytes) -> None:
        """Refuse a client over the limit.

        Raises: RateLimited until the end of the window in which too many requests were refused.
        """
        _require_allowed(await self._limit.look(client))

    async def count(self, client: bytes) -> None:
        """Count one refusal.

        Raises: RateLimited, in place of that refusal, if it exceeds the limit.
        """
        verdict = await self._limit.hit(client)
        if verdict.is_first_refused:
            _log.warning("refusals_limited", limit=self._name, address=client.hex(), for_s=verdict.reset_s)
        _require_allowed(verdict)

    async def aclose(self) -> None:
        """Close the connections, if there are any."""
        await self._limit.aclose()


def _require_allowed(verdict: LimitState) -> None:
    if not verdict.is_allowed:
        raise RateLimited(headers={"retry-after": str(verdict.reset_s)})
