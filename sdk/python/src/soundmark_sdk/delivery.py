"""Deliver an event over HTTP: the same bytes in every attempt, within limits, with a closed set of outcomes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import httpx2

from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.failures import DeliveryFailure, DeliveryReason
from soundmark_sdk.http_exchange import BodyRefused, NoAnswer, Response, ServiceConnection
from soundmark_sdk.retrying import RetryBudget, check_limits, retry

# A `recorded` event counts. A `duplicate` was counted before: a retry, or the same Code and receiver on the same day.
Outcome: TypeAlias = Literal["recorded", "duplicate"]

EVENT_BYTES_MAX: Final = 16 * 1024  # API contract, section 1.
ANSWER_BYTES_MAX: Final = 64 * 1024

_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json"}
_OUTCOMES: Final[Mapping[str, Outcome]] = {"recorded": "recorded", "duplicate": "duplicate"}

# The meaning of a problem code. With any other code, the status alone decides.
_BY_CODE: Final[Mapping[tuple[int, str], DeliveryReason]] = {
    (403, "organization_suspended"): "organization_suspended",
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
    "organization_suspended": "The publisher's organisation is suspended.",
    "event_invalid": "It is not a valid event.",
    "proof_invalid": "The measurement proof was refused.",
    "proof_replayed": "Another event has used the measurement proof.",
    "event_conflict": "Another event has the same id.",
    "integration_revoked": "The integration was revoked.",
    "entitlement_required": "The integration has no entitlement to measure at the moment.",
    "quota_exceeded": "The month's quota of events is used up.",
    "rate_limited": "The service asked for a pause.",
    "temporarily_unavailable": "The service cannot answer at the moment.",
    "network": "The service did not answer completely.",
    "unintelligible": "The contract does not allow this answer.",
}


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """The limits of one delivery: for each request, for their number, and for all pauses between them together."""

    timeout_s: float = 5.0
    attempts_max: int = 4
    retry_wait_max_s: float = 10.0

    def __post_init__(self) -> None:
        check_limits(self.timeout_s, attempts_max=self.attempts_max, retry_wait_max_s=self.retry_wait_max_s)


def make_failure(reason: DeliveryReason, retry_after_s: float | None = None) -> DeliveryFailure:
    """Return a failure with the fixed sentence of its reason."""
    return DeliveryFailure(reason, _EXPLANATIONS[reason], retry_after_s=retry_after_s)


class Deliverer:
    """A sender of events to one service, for one event loop; safe for any number of concurrent deliveries.

    `authorise` returns the header that authenticates exactly these bytes. It is called before each attempt.
    """

    def __init__(
        self,
        connection: ServiceConnection,
        authorise: Callable[[bytes], Mapping[str, str]],
        *,
        limits: DeliveryLimits,
        clock: Clock | None,
    ) -> None:
        self._connection: Final = connection
        self._authorise: Final = authorise
        self._limits: Final = limits
        self._clock: Final[Clock] = SystemClock() if clock is None else clock

    async def deliver(self, body: bytes) -> Outcome:
        """Deliver these bytes, the same in each attempt, and return the event's outcome.

        Raises: DeliveryFailure. RuntimeError when the connection is closed. Whatever `authorise` raises.
        """
        if len(body) > EVENT_BYTES_MAX:
            raise make_failure("event_invalid")
        return await retry(
            lambda: self._attempt(body),
            DeliveryFailure,
            may_retry=lambda failure: failure.retryable,
            budget=RetryBudget(self._limits.attempts_max - 1, self._limits.retry_wait_max_s),
            clock=self._clock,
        )

    async def _attempt(self, body: bytes) -> Outcome:
        headers = {**_HEADERS, **self._authorise(body)}
        timeout_s = self._limits.timeout_s
        try:
            async with self._connection.send("POST", "/v1/events", headers, body, timeout_s=timeout_s) as response:
                members = await _read_members(response)
                retry_after_s = response.read_retry_after_s(self._clock.now())
                return _judge(response.status, members, retry_after_s)
        except NoAnswer as error:
            raise DeliveryFailure("network", error.explanation) from None


async def _read_members(response: Response) -> Mapping[str, object]:
    """Return the members of the answer, none for a body that is not a JSON object or too large."""
    try:
        members = json.loads(await response.read(ANSWER_BYTES_MAX))
    except (BodyRefused, ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _judge(status: int, members: Mapping[str, object], retry_after_s: float | None) -> Outcome:
    if status in {httpx2.codes.OK, httpx2.codes.CREATED}:
        outcome = _OUTCOMES.get(str(members.get("status")))
        # The status is 201 for a new event and 200 for one that was there.
        if outcome is None or (outcome == "recorded") != (status == httpx2.codes.CREATED):
            raise make_failure("unintelligible")
        return outcome
    if httpx2.codes.is_server_error(status):
        raise make_failure("temporarily_unavailable", retry_after_s)
    by_status = _BY_STATUS.get(status, "unintelligible")
    raise make_failure(_BY_CODE.get((status, str(members.get("code"))), by_status), retry_after_s)
