"""Requests to somebody else's server: a limit on time and bytes, verified TLS, no redirects, no retries."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import httpx2

from soundmark.kit.http.outbound.tls import share_tls_context
from soundmark.kit.open_transaction import assert_no_transaction
from soundmark.kit.text.refused_hosts import is_refused_address


class RequestLost(Exception):
    """No whole response came; the server may have acted.

    `reason` is one of our own words and safe to log. `is_final` says that the same request would fail again.
    """

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.is_final: Final = is_final


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A request. Nothing of it is in an error message, because it holds credentials and references."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """A whole response; header names are in lower case, and `media_type` is without parameters."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    media_type: str
    body: bytes = field(repr=False)


class OutboundClient:
    """A client of one server that is not ours. `kit.http.outbound.tls` says which authorities it trusts.

    Settings refuse the addresses of `kit.text.refused_hosts`; a name that leads to one is refused here.
    """

    def __init__(self, *, bytes_max: int, extra_ca_file: Path | None) -> None:
        """Raises: OSError if the file cannot be read or holds no certificate."""
        self._bytes_max: Final = bytes_max
        self._client: Final = httpx2.AsyncClient(
            # Uncompressed, so that the limit on received bytes is also one on memory.
            headers={"accept": "application/json", "accept-encoding": "identity"},
            timeout=None,  # `send` bounds the whole exchange.
            limits=httpx2.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=5.0),
            verify=share_tls_context(extra_ca_file),
            trust_env=False,
            follow_redirects=False,
        )

    async def send(self, request: OutboundRequest, *, timeout_s: float) -> OutboundResponse:
        """Send a request and read the whole response, whatever its status, within `timeout_s`.

        Raises: RequestLost.
        """
        assert_no_transaction("a call to somebody else's server")
        sending = self._client.stream(
            request.method,
            request.url,
            headers=dict(request.headers),
            content=request.body,
            extensions={"trace": _judge_connection},
        )
        try:
            async with asyncio.timeout(timeout_s), sending as response:
                body = await self._read(response)
        except TimeoutError:
            raise RequestLost("deadline") from None
        except _AddressRefused:
            raise RequestLost("address_refused") from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise RequestLost("unreachable") from None
        except UnicodeEncodeError:
            # An operator set a credential that no header can hold. The error would repeat it.
            raise RequestLost("unusable_key", is_final=True) from None
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return OutboundResponse(response.status_code, headers, media_type, body)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _read(self, response: httpx2.Response) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > self._bytes_max:
                raise RequestLost("oversized", is_final=True)
            chunks.append(chunk)
        return b"".join(chunks)


class _AddressRefused(Exception):
    """A name led to an address that no setting may have."""


async def _judge_connection(event: str, info: Mapping[str, Any]) -> None:
    """Close a new connection to a refused address before anything is sent on it.

    Raises: _AddressRefused.
    Source: httpcore, "Extensions", `trace`.
    """
    if event != "connection.connect_tcp.complete":
        return
    stream = info["return_value"]
    if is_refused_address(ip_address(stream.get_extra_info("server_addr")[0])):
        await stream.aclose()
        raise _AddressRefused
