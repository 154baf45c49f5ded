"""Carries the requests of the card provider's SDK over our own HTTP client, with our own retries."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import stripe
import structlog

from soundmark.kit.http.outbound.client import OutboundClient, OutboundRequest, OutboundResponse, RequestLost
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json

_BYTES_MAX: Final = 4 * 1024 * 1024  # A hundred events with the objects that they are about.
_SEND_TIMEOUT_S: Final = 6.0  # Less than a call may take, so that a lost request can be sent again.
_SENDS_MAX: Final = 4
_LOST_MAX: Final = 2
_BACKOFF_S: Final = 0.5  # Doubled each time; the SDK's own value.
_OK: Final = range(200, 300)
_FAULTS: Final = range(500, 600)
_CONFLICT: Final = 409
_LIMITED: Final = 429
_INVALID: Final = 400
_log: Final = structlog.get_logger()


CUSTOMER_MISSING: Final = "customer_missing"  # The reason of a refusal that names the customer.


class CallFailed(Exception):
    """The provider refused, or did not answer as documented.

    `status` is None if no whole response came. `is_spent` says that the provider has stored a failure under the
    idempotency key, so that only another key can succeed.
    """

    def __init__(self, reason: str, status: int | None = None, *, is_spent: bool = False) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.status: Final = status
        self.is_spent: Final = is_spent


class Transport(stripe.HTTPClient):
    """The HTTP client of the SDK.

    The SDK gets a response only if that is a success and a JSON object. Everything else is raised as `CallFailed`
    through the SDK, whose own errors and logs repeat secrets and references. A request is sent `sends_max` times at
    most.
    """

    name = "soundmark"

    def __init__(self, extra_ca_file: Path | None, *, sends_max: int = _SENDS_MAX) -> None:
        super().__init__()
        silence_sdk()
        self._sends_max: Final = sends_max
        self._client: Final = OutboundClient(bytes_max=_BYTES_MAX, extra_ca_file=extra_ca_file)

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        """Send one request of the SDK, again where the provider's rules allow it.

        Lost: once more, with the same idempotency key. 409 and 5xx: as `Stripe-Should-Retry` says; without it again
        with the same key, except a POST that answered 5xx, because the provider repeats that answer under its key. 429
        is final.

        Raises: CallFailed.
        Source: the provider's documentation of idempotent requests; `_should_retry` of the SDK.
        """
        request = OutboundRequest(method.upper(), url, headers, post_data.encode() if post_data else None)
        lost_count = 0
        for send_count in range(1, self._sends_max + 1):
            failed = CallFailed("unreachable")
            try:
                response = await self._client.send(request, timeout_s=_SEND_TIMEOUT_S)
            except RequestLost as lost:
                lost_count += 1
                failed = CallFailed(lost.reason)
                may_repeat = lost_count < _LOST_MAX and not lost.is_final
            else:
                if response.status in _OK:
                    return _require_object(response), response.status, {}
                failed = _failure(request, response)
                may_repeat = _may_repeat(request, response)
            if not may_repeat or send_count == self._sends_max:
                raise failed
            await asyncio.sleep(_BACKOFF_S * 2 ** (send_count - 1))
        raise AssertionError("the loop returns or raises")

    async def close_async(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def silence_sdk() -> None:
    """Stop the SDK from logging and from sending telemetry, whatever the environment says."""
    stripe.enable_telemetry = False
    stripe.log = None
    stripe._util.STRIPE_LOG = None  # noqa: SLF001 - read from the environment on import
    logging.getLogger("stripe").disabled = True


def _require_object(response: OutboundResponse) -> bytes:
    try:
        value = parse_json(response.body)
    except MalformedJson:
        raise CallFailed("malformed", response.status) from None
    if response.media_type != "application/json" or not isinstance(value, dict):
        raise CallFailed("malformed", response.status)
    return response.body


def _failure(request: OutboundRequest, response: OutboundResponse) -> CallFailed:
    is_fault = response.status in _FAULTS
    if response.status == _INVALID and _names_missing_customer(response.body):
        return CallFailed(CUSTOMER_MISSING, response.status)
    is_spent = request.method == "POST" and is_fault and response.headers.get("stripe-should-retry") != "true"
    return CallFailed("refused", response.status, is_spent=is_spent)


def _names_missing_customer(body: bytes) -> bool:
    """Return whether an error says that the provider has no such customer, because somebody deleted it there."""
    try:
        document = parse_json(body)
    except MalformedJson:
        return False
    error = document.get("error") if isinstance(document, dict) else None
    return isinstance(error, dict) and (error.get("code"), error.get("param")) == ("resource_missing", "customer")


def _may_repeat(request: OutboundRequest, response: OutboundResponse) -> bool:
    """Return whether the same request, with the same idempotency key, may be sent again."""
    if response.status == _LIMITED:
        return False
    advice = response.headers.get("stripe-should-retry")
    if advice in {"true", "false"}:
        return advice == "true"
    return response.status == _CONFLICT or (response.status in _FAULTS and request.method == "GET")
