"""Delivering an event over HTTP: the same bytes as often as it takes, within limits, and a closed set of outcomes."""

import asyncio
import importlib.metadata
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import httpx2

from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.connecting import explain_network_failure
from soundmark_sdk.failures import DeliveryFailure, DeliveryReason
from soundmark_sdk.http_exchange import check_base_url, parse_retry_after
from soundmark_sdk.retrying import RetryBudget

# `recorded` counts; `duplicate` was counted before: a retry, or the same Code and receiver again on the same day.
Outcome: TypeAlias = Literal["recorded", "duplicate"]

EVENT_BYTES_MAX: Final = 16 * 1024  # API contract, section 1.
ANSWER_BYTES_MAX: Final = 64 * 1024
# Shorter than the five seconds after which uvicorn, like many servers, hangs up on an idle connection.
_IDLE_S: Final = 2.0
_AGENT: Final = f"soundmark-sdk/{importlib.metadata.version('soundmark-sdk')}"
_OUTCOMES: Final[Mapping[str, Outcome]] = {"recorded": "recorded", "duplicate": "duplicate"}

# What a refusal's problem code means; any other code of the status is told by the status alone.
_BY_CODE: Final[Mapping[tuple[int, str], DeliveryReason]] = {
    (409, "proof_replayed"): "proof_replayed",
    (409, "event_conflict"): "event_conflict",
    (409, "integration_revoked"): "integration_revoked",
    (409, "entitlement_required"): "entitlement_required",
    (422, "proof_invalid"): "proof_invalid",
    (429, "event_quota_exceeded"): "quota_exceeded",
}
_BY_STATUS: Final[Mapping[int, DeliveryReason]] = {
    400: "event_invalid",
    401: "unauthenticated",
    403: "unauthenticated",
    408: "temporarily_unavailable",
    413: "event_invalid",
    415: "event_invalid",
    422: "event_invalid",
    429: "rate_limited",
}
_EXPLANATIONS: Final[Mapping[DeliveryReason, str]] = {
    "unauthenticated": "The credential was refused.",
    "event_invalid": "It was not taken for an event.",
    "proof_invalid": "The measurement proof was refused.",
    "proof_replayed": "The measurement proof was spent by another event.",
    "event_conflict": "The event's id was used for another event.",
    "integration_revoked": "The integration was revoked.",
    "entitlement_required": "Nobody is entitled to measure with the integration at present.",
    "quota_exceeded": "The month's events are used up.",
    "rate_limited": "The service asked to be left alone for a while.",
    "temporarily_unavailable": "The service cannot answer at present.",
    "network": "The service did not answer completely.",
    "unintelligible": "The answer is not one that the contract knows.",
}


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """How long one delivery tries: each request, the requests, and all pauses between them together."""

    timeout_s: float = 5.0
    attempts_max: int = 4
    retry_wait_max_s: float = 10.0

    def __post_init__(self) -> None:
        if self.timeout_s <= 0 or self.attempts_max < 1 or self.retry_wait_max_s < 0:
            raise ValueError("timeout_s must be above 0, attempts_max at least 1 and retry_wait_max_s at least 0.")


def failure_for(reason: DeliveryReason, retry_after_s: float | None = None) -> DeliveryFailure:
    """Return the failure with the fixed sentence of its reason."""
    return DeliveryFailure(reason, _EXPLANATIONS[reason], retry_after_s=retry_after_s)


class Deliverer:
    """Posts events to one address, for one event loop; safe for any number of concurrent deliveries.

    `authorise` returns the header that lets these very bytes in, asked anew before each attempt.
    """

    def __init__(  # noqa: PLR0913 - each is a setting, and named
        self,
        base_url: str,
        authorise: Callable[[bytes], Mapping[str, str]],
        *,
        limits: DeliveryLimits,
        allow_insecure_http: bool,
        transport: httpx2.AsyncBaseTransport | None,
        clock: Clock | None,
    ) -> None:
        """Raises: ValueError for an address that is not https (plain http: loopback only)."""
        self.address: Final = check_base_url(base_url, allow_insecure_http=allow_insecure_http)
        self._authorise: Final = authorise
        self._limits: Final = limits
        connections = httpx2.Limits(max_connections=100, keepalive_expiry=_IDLE_S)
        self._transport: Final = httpx2.AsyncHTTPTransport(limits=connections) if transport is None else transport
        self._clock: Final[Clock] = SystemClock() if clock is None else clock
        self._closed = False

    async def aclose(self) -> None:
        """Close the connections; nothing is delivered any more."""
        self._closed = True
        await self._transport.aclose()

    async def deliver(self, body: bytes) -> Outcome:
        """Deliver these bytes, unchanged in each attempt, and return what became of the event.

        Raises: DeliveryFailure. RuntimeError after `aclose`. What `authorise` raises.
        """
        if len(body) > EVENT_BYTES_MAX:
            raise failure_for("event_invalid")
        budget = RetryBudget(self._limits.attempts_max - 1, self._limits.retry_wait_max_s)
        while True:
            try:
                return await self._attempt(body)
            except DeliveryFailure as failure:
                wait_s = budget.spend(failure)
            await self._clock.sleep(wait_s)

    async def _attempt(self, body: bytes) -> Outcome:
        # The transport would connect anew, and nobody would close that connection.
        if self._closed:
            raise RuntimeError("This is closed.")
        headers = {
            "User-Agent": _AGENT,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            **self._authorise(body),
        }
        request = httpx2.Request("POST", f"{self.address}/v1/events", headers=headers, content=body)
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                response = await self._transport.handle_async_request(request)
                try:
                    answer = await _read(response)
                finally:
                    await response.aclose()
        except (httpx2.HTTPError, OSError) as error:  # TimeoutError is an OSError
            raise DeliveryFailure("network", explain_network_failure(self.address, error)) from None
        retry_after_s = parse_retry_after(response.headers.get("retry-after"), self._clock.now())
        return _outcome(response.status_code, _members(answer), retry_after_s)


async def _read(response: httpx2.Response) -> bytes:
    """Return the body; nothing of one that is encoded or too large, whatever the status."""
    body = bytearray()
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return b""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            return b""
    return bytes(body)


def _members(answer: bytes) -> Mapping[str, object]:
    try:
        members = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _outcome(status: int, members: Mapping[str, object], retry_after_s: float | None) -> Outcome:
    if status in {httpx2.codes.OK, httpx2.codes.CREATED}:
        outcome = _OUTCOMES.get(str(members.get("status")))
        # 201 says that it was new, 200 that it was not.
        if outcome is None or (outcome == "recorded") != (status == httpx2.codes.CREATED):
            raise failure_for("unintelligible")
        return outcome
    if 500 <= status <= 599:  # noqa: PLR2004 - RFC 9110, section 15.6: every 5xx, known or not
        raise failure_for("temporarily_unavailable", retry_after_s)
    by_status = _BY_STATUS.get(status, "unintelligible")
    raise failure_for(_BY_CODE.get((status, str(members.get("code"))), by_status), retry_after_s)
