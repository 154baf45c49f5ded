"""One GET over HTTP that trusts nothing: no redirect, no cookie, no endless body, no endless wait."""

import asyncio
import email.utils
import ipaddress
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import httpx2

from soundmark_sdk.connecting import explain_network_failure
from soundmark_sdk.failures import ReceiverFailure, Unverifiable

# A payload is at most 64 KiB of base64url and the outer intent 16 KiB; a key set of hundreds of keys fits as well.
BODY_BYTES_MAX: Final = 256 * 1024

_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_MAX_AGE: Final = re.compile(r"(?:^|[,\s])max-age=([0-9]{1,9})(?=$|[,\s])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """What is taken from a response: never its reason phrase, and a body only with status 200."""

    status: int
    body: bytes
    retry_after: str | None
    max_age_s: float | None


def check_base_url(base_url: str, *, allow_insecure_http: bool = False) -> str:
    """Return the service's address without a trailing slash.

    Raises: ValueError for anything but `https://host[:port][/path]`, or `http` where the host is this machine or
        `allow_insecure_http` says so: an answer is signed, but who hears which Code is nobody else's business.
    """
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        raise ValueError("The base URL is malformed.") from None
    if url.scheme not in {"https", "http"} or not url.host:
        raise ValueError("The base URL must begin with https:// and name a host.")
    if url.userinfo or url.query or url.fragment or "?" in base_url or "#" in base_url:
        raise ValueError("The base URL must have no credentials, query or fragment.")
    if url.scheme == "http" and not (allow_insecure_http or _is_loopback(url.host)):
        raise ValueError("The base URL must be https; plain http is for loopback addresses only.")
    return base_url.rstrip("/")


async def get(
    transport: httpx2.AsyncBaseTransport, base_url: str, path: str, headers: dict[str, str], timeout_s: float
) -> Reply:
    """Return the response to one GET, read whole within `timeout_s` seconds and `BODY_BYTES_MAX` bytes.

    It speaks to the transport itself: an `httpx2.AsyncClient` would keep cookies, read `.netrc` and follow links, each
    of which can tell one receiver from another.

    Raises: ReceiverFailure `network` when no whole response came in time; Unverifiable when it is too large or encoded.
    """
    # Compressed bodies are not asked for, so that the ceiling counts what was sent and nothing can unfold.
    asked = {"Accept-Encoding": "identity", "Accept": "application/json", **headers}
    request = httpx2.Request("GET", base_url + path, headers=asked)
    try:
        async with asyncio.timeout(timeout_s):
            response = await transport.handle_async_request(request)
            try:
                return await _read(response)
            finally:
                await response.aclose()
    except (httpx2.HTTPError, OSError) as error:  # TimeoutError is an OSError
        raise ReceiverFailure("network", explain_network_failure(base_url, error)) from None


def failure_of_status(reply: Reply, now: datetime) -> ReceiverFailure | None:
    """Return the failure that any route's status stands for, or None when it is the route's own to judge."""
    if reply.status == httpx2.codes.TOO_MANY_REQUESTS:
        explanation = "The service asked to be left alone for a while."
        return ReceiverFailure("rate_limited", explanation, retry_after_s=parse_retry_after(reply.retry_after, now))
    if 500 <= reply.status <= 599:  # noqa: PLR2004 - RFC 9110, section 15.6: every 5xx, known or not
        explanation = "The service cannot answer at present."
        retry_after_s = parse_retry_after(reply.retry_after, now)
        return ReceiverFailure("temporarily_unavailable", explanation, retry_after_s=retry_after_s)
    return None


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Return how many seconds from now a `Retry-After` header asks for, 0 for the past, None for nonsense.

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


async def _read(response: httpx2.Response) -> Reply:
    headers = response.headers
    max_age = _MAX_AGE.search(headers.get("cache-control", ""))
    return Reply(
        status=response.status_code,
        body=await _read_body(response) if response.status_code == httpx2.codes.OK else b"",
        retry_after=headers.get("retry-after"),
        max_age_s=float(max_age[1]) if max_age else None,
    )


async def _read_body(response: httpx2.Response) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Unverifiable("The body is encoded in a way that was not asked for.")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise Unverifiable("The body is too large.")
    return bytes(body)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
