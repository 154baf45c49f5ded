"""Requests to URLs that somebody else chose: only to the public internet, whatever their names resolve to.

`kit.http.outbound.client` is for servers that the operator configured, which may be in a private network. This client
is made of httpcore2, which httpx2 is made of too, because only there the connection itself can be replaced.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import httpcore2

from soundmark.kit.http.outbound.public_address import Address, find_address, is_public
from soundmark.kit.http.outbound.public_url import parse_public_url
from soundmark.kit.http.outbound.resolving import NameNotFound, Resolver
from soundmark.kit.http.outbound.tls import share_tls_context
from soundmark.kit.open_transaction import assert_no_transaction
from soundmark.kit.text.validation import is_loopback_host

SendError = Literal[
    "url_refused",
    "name_not_resolved",
    "address_refused",
    "connection_failed",
    "tls_failed",
    "connection_lost",
    "invalid_response",
    "timeout",
]

_BODY_BYTES_MAX: Final = 4096  # Of a response; nobody reads it.
_BODY_S: Final = 1.0
_ADDRESSES_MAX: Final = 4  # Tried for one request, within its deadline.
_CONNECT_S: Final = 3.0  # To one address, so that one that does not answer leaves time for the next.
# Shorter than servers keep a connection, so that we do not send on one that they are just closing.
_KEEPALIVE_S: Final = 2.0

Headers: TypeAlias = Mapping[str, str]


class NotSent(Exception):
    """No response came; the server may have acted. `reason` is one of our own words and safe to publish."""

    def __init__(self, reason: SendError) -> None:
        super().__init__(reason)
        self.reason: Final = reason


class GuardedClient:
    """A client of any number of servers that other people chose.

    A name is resolved once for a connection, all its addresses are judged, and one of them is connected to; there is no
    second look-up that could answer otherwise. Redirects, proxies and cookies are unknown to it.
    """

    def __init__(
        self,
        *,
        connections_max: int,
        allow_loopback: bool,
        extra_ca_file: Path | None,
        resolver: Resolver | None = None,
    ) -> None:
        """Raises: OSError if the file cannot be read or holds no certificate."""
        self._allow_loopback: Final = allow_loopback
        self._pool: Final = httpcore2.AsyncConnectionPool(
            ssl_context=share_tls_context(extra_ca_file),
            max_connections=connections_max,
            max_keepalive_connections=connections_max,
            keepalive_expiry=_KEEPALIVE_S,
            network_backend=_GuardedBackend(resolver or Resolver(), allow_loopback=allow_loopback),
        )

    async def post(self, url: str, headers: Headers, body: bytes, *, timeout_s: float) -> int:
        """Send a request; return the status of the response, whose body is thrown away.

        Raises: NotSent, also if the head of the response is not there after `timeout_s`.
        """
        assert_no_transaction("a request to a server that somebody else chose")
        request = self._make_request(url, headers, body)
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._pool.handle_async_request(request)
        except TimeoutError:
            raise NotSent("timeout") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise NotSent(_find_reason(error)) from None
        await _discard_body(response)
        return response.status

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    def _make_request(self, url: str, headers: Headers, body: bytes) -> httpcore2.Request:
        """Raises: NotSent."""
        try:
            parts = parse_public_url(url, allow_loopback=self._allow_loopback)
        except ValueError:
            raise NotSent("url_refused") from None
        target = httpcore2.URL(scheme=parts.scheme, host=parts.host, port=parts.port, target=parts.target)
        framing = {"host": parts.authority, "content-length": str(len(body))}
        return httpcore2.Request("POST", target, headers=list((framing | dict(headers)).items()), content=body)


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connections to judged addresses. The name stays that of TLS: the server name and what the certificate is for."""

    def __init__(self, resolver: Resolver, *, allow_loopback: bool) -> None:
        self._resolver: Final = resolver
        self._allow_loopback: Final = allow_loopback
        self._network: Final = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109, ARG002 - theirs; `post` bounds everything
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first of the host's addresses that answers.

        Raises: NotSent.
        """
        for address in (await self._find_judged(host))[:_ADDRESSES_MAX]:
            with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._network.connect_tcp(
                    str(address), port, _CONNECT_S, local_address=local_address, socket_options=socket_options
                )
        raise NotSent("connection_failed")

    async def _find_judged(self, host: str) -> tuple[Address, ...]:
        """Return the addresses of `host`. One that must not be connected to makes the name suspect, and it is refused.

        Raises: NotSent.
        """
        literal = find_address(host)
        try:
            addresses = (literal,) if literal is not None else await self._resolver.find_addresses(host)
        except NameNotFound:
            raise NotSent("name_not_resolved") from None
        is_local = self._allow_loopback and is_loopback_host(host)
        if not all(address.is_loopback if is_local else is_public(address) for address in addresses):
            raise NotSent("address_refused")
        return addresses


async def _discard_body(response: httpcore2.Response) -> None:
    """Read a short body, so that the connection can be used again; otherwise close the connection."""
    size = 0
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in cast("Any", response.stream):
                size += len(chunk)
                if size > _BODY_BYTES_MAX:
                    break
    except (TimeoutError, httpcore2.NetworkError, httpcore2.ProtocolError):
        pass  # The status was received, and the rest does not matter.
    finally:
        await response.aclose()


def _find_reason(error: Exception) -> SendError:
    match error:
        case httpcore2.ConnectError():
            return "tls_failed"  # The backend has connected.
        case httpcore2.ProtocolError() if isinstance(error.args[0], Exception):
            return "invalid_response"  # The parser's own error.
        case _:
            return "connection_lost"  # Also before the end of a head, which is a ProtocolError of the connection's own.
