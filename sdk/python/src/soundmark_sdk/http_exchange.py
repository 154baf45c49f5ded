"""Send requests to one service and read the responses within limits: no redirect, no cookie, no endless body or wait.

This is the only code of the package that uses the network. It calls the transport itself: an `httpx2.AsyncClient` would
keep cookies, read `.netrc` and follow redirects, each of which can identify a receiver or leak a credential.
"""

import asyncio
import email.utils
import importlib.metadata
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import httpx2

from soundmark_sdk.network_failures import could_not_connect, explain_network_failure

_AGENT: Final = f"soundmark-sdk/{importlib.metadata.version('soundmark-sdk')}"
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
# uvicorn, like many servers, closes a connection after five idle seconds. A request sent just then would be lost.
_IDLE_S: Final = 2.0
_CONNECTIONS_MAX: Final = 100
_PORT_MAX: Final = 65535


class NoAnswer(Exception):
    """No complete response arrived in time. `was_sent` is false when the service cannot have seen the request."""

    def __init__(self, base_url: str, error: Exception) -> None:
        super().__init__(explain_network_failure(base_url, error))
        self.explanation: Final = str(self)
        self.was_sent: Final = not could_not_connect(error)


class BodyRefused(Exception):
    """The body is compressed or too large, which the message says."""


class Response:
    """A response whose headers have arrived. Its reason phrase, which a server may choose freely, is never read."""

    def __init__(self, base_url: str, response: httpx2.Response) -> None:
        self._base_url: Final = base_url
        self._response: Final = response
        self.status: Final = response.status_code
        self.headers: Final[Mapping[str, str]] = response.headers

    @property
    def is_encoded(self) -> bool:
        """Whether the body is compressed, though the request asked for a plain one."""
        return self.headers.get("content-encoding", "identity").lower() != "identity"

    @property
    def length(self) -> int | None:
        """The number of bytes in the body, or None when the server did not say."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() else None

    def read_retry_after_s(self, now: datetime) -> float | None:
        """Return the pause in seconds that the server asks for, or None."""
        return parse_retry_after(self.headers.get("retry-after"), now)

    async def read(self, bytes_max: int) -> bytes:
        """Return the whole body.

        Raises: BodyRefused for a compressed body and for more than `bytes_max` bytes; NoAnswer.
        """
        self._require_plain()
        body = bytearray()
        try:
            async for chunk in self._response.aiter_raw():
                body += chunk
                if len(body) > bytes_max:
                    raise BodyRefused("The body is too large.")
        except (httpx2.HTTPError, OSError) as error:
            raise NoAnswer(self._base_url, error) from None
        return bytes(body)

    async def stream(self, take: Callable[[bytes], None]) -> None:
        """Pass each piece of the body to `take` as it arrives.

        Raises: BodyRefused for a compressed body; NoAnswer; anything that `take` raises.
        """
        self._require_plain()
        chunks = self._response.aiter_raw()
        # Not `async for`: an error of `take`, such as a full disk, must not look like one of the network.
        while (chunk := await self._next_chunk(chunks)) is not None:
            take(chunk)

    def _require_plain(self) -> None:
        if self.is_encoded:
            raise BodyRefused("The body is encoded, although the request asked for a plain one.")

    async def _next_chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        try:
            return await anext(chunks, None)
        except (httpx2.HTTPError, OSError) as error:
            raise NoAnswer(self._base_url, error) from None


class ServiceConnection:
    """The connections to one service, for one event loop; safe for any number of concurrent requests.

    `owner` names the object that the caller closes, for the error after that.
    """

    def __init__(
        self, base_url: str, *, owner: str, allow_insecure_http: bool, transport: httpx2.AsyncBaseTransport | None
    ) -> None:
        """Raises: ValueError for an address that is not https (plain http: loopback only)."""
        self.base_url: Final = check_base_url(base_url, allow_insecure_http=allow_insecure_http)
        self._owner: Final = owner
        self._transport: Final = new_transport(self.base_url) if transport is None else transport
        self._closed = False

    async def close(self) -> None:
        """Close the connections and refuse further requests."""
        self._closed = True
        await self._transport.aclose()

    def check_open(self) -> None:
        """Refuse requests after `close`, because the transport would open a connection that nobody closes.

        Raises: RuntimeError.
        """
        if self._closed:
            raise RuntimeError(f"This {self._owner} is closed.")

    @asynccontextmanager
    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None, *, timeout_s: float
    ) -> AsyncIterator[Response]:
        """Send one request and yield its response. `timeout_s` covers all, from connecting to the end of the block.

        Raises: NoAnswer. RuntimeError after `close`.
        """
        self.check_open()
        # A compressed body could unfold to any size, so that limits on the bytes that arrive would mean nothing.
        fixed = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
        request = httpx2.Request(method, self.base_url + path, headers={**fixed, **headers}, content=body)
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._start(request)
                try:
                    yield Response(self.base_url, response)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise NoAnswer(self.base_url, error) from None

    async def _start(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._transport.handle_async_request(request)
        except (httpx2.HTTPError, OSError) as error:
            raise NoAnswer(self.base_url, error) from None


def new_transport(base_url: str) -> httpx2.AsyncHTTPTransport:
    """Return a transport for one service that never reuses a connection which the service may be closing.

    For plain http it trusts no authority at all, because reading those of the machine takes longer than a request.
    """
    is_plain = base_url.lower().startswith("http://")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else httpx2.create_ssl_context()
    limits = httpx2.Limits(max_connections=_CONNECTIONS_MAX, keepalive_expiry=_IDLE_S)
    return httpx2.AsyncHTTPTransport(verify=context, limits=limits)


def check_base_url(base_url: str, *, allow_insecure_http: bool = False) -> str:
    """Return the service's address without a trailing slash.

    Raises: ValueError for anything but `https://host[:port][/path]`. Plain `http` is allowed for this machine, or with
        `allow_insecure_http`: an answer is signed, but which Codes somebody hears is private.
    """
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        raise ValueError("The base URL is malformed.") from None
    if url.scheme not in {"https", "http"} or not url.host:
        raise ValueError("The base URL must begin with https:// and name a host.")
    if url.port is not None and not 1 <= url.port <= _PORT_MAX:
        raise ValueError("The base URL must have a port from 1 to 65535, or none.")
    if url.userinfo or url.query or url.fragment or "?" in base_url or "#" in base_url:
        raise ValueError("The base URL must have no credentials, query or fragment.")
    if url.scheme == "http" and not (allow_insecure_http or _is_loopback(url.host)):
        raise ValueError("The base URL must be https; plain http is for loopback addresses only.")
    return base_url.rstrip("/")


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds from now in a `Retry-After` header: 0 for the past, None for a header without meaning.

    Source: RFC 9110, section 10.2.3.
    """
    if value is None:
        return None
    if _SECONDS.fullmatch(value) is not None:
        return float(value)
    try:
        at = email.utils.parsedate_to_datetime(value)
        return max(0.0, (at - now).total_seconds())
    except (ValueError, TypeError, OverflowError):  # TypeError: a date without a zone
        return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
