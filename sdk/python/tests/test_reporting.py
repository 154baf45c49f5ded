"""Reporters and publishers deliver the same bytes, within limits, and distinguish every outcome."""

import asyncio
import hashlib
import hmac
import json
import traceback
from typing import Any, get_args

import pytest
from soundmark_sdk import AsyncReporter, DeliveryFailure, DeliveryReason, Reporter
from soundmark_sdk.delivery import _EXPLANATIONS, ANSWER_BYTES_MAX, DeliveryLimits
from soundmark_sdk.publisher import AsyncPublisher, Publisher
from soundmark_sdk.publisher.backend import _ANSWERS

from .event_service import HMAC_SECRET, EventService
from .issuer import INTEGRATION_ID, Issuer, compact
from .issuing_service import (
    Fault,
    answer_half,
    answer_with,
    lose_answer,
    lose_request,
    make_problem,
    perform_and_answer_with,
    stay_silent,
)
from .measurements import make_measurement
from .stand_ins import FakeClock, make_response

TOKEN = "a-reporting-token"


async def report(events: EventService, clock: FakeClock, body: bytes, **limits: Any) -> str:
    async with AsyncReporter(events.url, TOKEN, clock=clock, limits=DeliveryLimits(**limits)) as reporter:
        return await reporter.report(body)


async def fail(events: EventService, clock: FakeClock, body: bytes, **limits: Any) -> DeliveryFailure:
    with pytest.raises(DeliveryFailure) as failure:
        await report(events, clock, body, **limits)
    shown = "".join(traceback.format_exception(failure.value))
    assert "server text" not in shown
    assert json.loads(body)["event_id"] not in shown
    return failure.value


@pytest.fixture
def body(issuer: Issuer, clock: FakeClock) -> bytes:
    """The body of one measurement."""
    return make_measurement(issuer, clock).body


async def test_a_measurement_is_delivered_unchanged_and_counted_once(
    events: EventService, issuer: Issuer, clock: FakeClock
) -> None:
    measurement = make_measurement(issuer, clock)
    async with AsyncReporter(events.url, TOKEN, clock=clock) as reporter:
        assert [await reporter.report(measurement), await reporter.report(measurement.body)] == [
            "recorded",
            "duplicate",
        ]
    assert events.bodies == [measurement.body] * 2
    (request, _) = events.state.requests
    assert (request.method, request.path) == ("POST", "/v1/events")
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["content-type"] == "application/json"
    assert "cookie" not in request.headers


def test_blocking_code_gets_the_same_result(events: EventService, body: bytes) -> None:
    with Reporter(events.url, lambda: TOKEN) as reporter:
        assert reporter.report(body) == "recorded"
        assert TOKEN not in repr(reporter)
    with pytest.raises(RuntimeError, match="closed"):
        reporter.report(body)


@pytest.mark.parametrize(
    "fault",
    [
        lose_request,
        lose_answer,
        answer_half,
        answer_with(make_response(500)),
        perform_and_answer_with(make_response(503)),
    ],
)
async def test_a_lost_delivery_is_repeated_byte_for_byte(
    events: EventService, clock: FakeClock, body: bytes, fault: Fault
) -> None:
    events.add_faults(fault, fault)
    assert await report(events, clock, body) in {"recorded", "duplicate"}
    assert events.bodies == [body] * 3
    assert len(events.stored) == 1
    assert len(clock.slept_s) == 2
    assert clock.slept_s[0] < clock.slept_s[1]


async def test_a_retry_after_a_lost_answer_returns_duplicate(
    events: EventService, clock: FakeClock, body: bytes
) -> None:
    events.add_faults(lose_answer)
    assert await report(events, clock, body) == "duplicate"


async def test_it_waits_for_as_long_as_the_service_asks(events: EventService, clock: FakeClock, body: bytes) -> None:
    events.add_faults(
        answer_with(make_problem(429, "rate_limited", Retry_After="7")),
        answer_with(make_problem(503, "x", Retry_After="2")),
    )
    assert await report(events, clock, body) == "recorded"
    assert clock.slept_s == [7, 2]


async def test_a_pause_beyond_the_limit_ends_it_at_once(events: EventService, clock: FakeClock, body: bytes) -> None:
    events.add_faults(answer_with(make_problem(503, "audience_unavailable", Retry_After="11")))
    failure = await fail(events, clock, body)
    assert (failure.reason, failure.retryable, failure.retry_after_s) == ("temporarily_unavailable", True, 11)
    assert clock.slept_s == []


async def test_it_ends_after_its_attempts(events: EventService, clock: FakeClock, body: bytes) -> None:
    events.add_faults(*[lose_request] * 9)
    assert (await fail(events, clock, body, attempts_max=3)).reason == "network"
    assert len(events.bodies) == 3


async def test_a_silent_service_holds_nobody(events: EventService, clock: FakeClock, body: bytes) -> None:
    events.add_faults(stay_silent)
    assert (await fail(events, clock, body, timeout_s=0.2, attempts_max=1)).reason == "network"


REFUSALS = [
    (400, "malformed_json", "event_invalid"),
    (401, "unauthenticated", "unauthenticated"),
    (403, "forbidden", "unauthenticated"),
    (403, "organization_suspended", "organization_suspended"),
    (404, "not_found", "unintelligible"),
    (409, "proof_replayed", "proof_replayed"),
    (409, "event_conflict", "event_conflict"),
    (409, "integration_revoked", "integration_revoked"),
    (409, "entitlement_required", "entitlement_required"),
    (409, "something_new", "unintelligible"),
    (413, "payload_too_large", "event_invalid"),
    (415, "unsupported_media_type", "event_invalid"),
    (422, "proof_invalid", "proof_invalid"),
    (422, "validation_failed", "event_invalid"),
    (429, "event_quota_exceeded", "quota_exceeded"),
    # A code has its meaning only with its own status.
    (422, "proof_replayed", "event_invalid"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: f"{refusal[0]} {refusal[1]}")
async def test_a_refusal_has_its_reason_and_is_not_retried(
    events: EventService, clock: FakeClock, body: bytes, refusal: tuple[int, str, str]
) -> None:
    status, code, reason = refusal
    events.add_faults(answer_with(make_problem(status, code, Retry_After="1")))
    failure = await fail(events, clock, body)
    assert (failure.reason, failure.retryable) == (reason, False)
    assert len(events.bodies) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 599])
async def test_temporary_trouble_is_retried(events: EventService, clock: FakeClock, body: bytes, status: int) -> None:
    events.add_faults(*[answer_with(make_response(status, b"<html>"))] * 4)
    assert (await fail(events, clock, body)).retryable
    assert len(events.bodies) == 4


@pytest.mark.parametrize(
    "answer",
    [
        make_response(200, b""),
        make_response(201, b"[]"),
        make_response(201, b"{"),
        make_response(201, b"\xff"),
        make_response(201, b"[" * 60_000),
        make_response(201, compact({"status": "duplicate"})),
        make_response(200, compact({"status": "recorded"})),
        make_response(200, compact({"status": ["duplicate"]})),
        make_response(201, b" " * ANSWER_BYTES_MAX + b'{"status": "recorded"}'),
        make_response(201, compact({"status": "recorded"}), Content_Encoding="gzip"),
        make_response(204),
        make_response(302, Location="http://127.0.0.1:9/v1/events"),
    ],
)
async def test_an_answer_without_an_outcome_is_not_a_success(
    events: EventService, clock: FakeClock, body: bytes, answer: bytes
) -> None:
    events.add_faults(answer_with(answer))
    assert (await fail(events, clock, body)).reason == "unintelligible"


async def test_an_event_that_is_too_large_is_not_sent(events: EventService, clock: FakeClock) -> None:
    with pytest.raises(DeliveryFailure) as failure:
        await report(events, clock, b"{" + b" " * 16 * 1024)
    assert failure.value.reason == "event_invalid"
    assert events.bodies == []


async def test_the_token_is_read_before_each_attempt(events: EventService, clock: FakeClock, body: bytes) -> None:
    events.add_faults(lose_request)
    tokens = iter(("first", "second"))
    async with AsyncReporter(events.url, lambda: next(tokens), clock=clock) as reporter:
        await reporter.report(body)
    assert [request.headers["authorization"] for request in events.state.requests] == ["Bearer first", "Bearer second"]


def test_an_impossible_token_is_refused_and_not_shown(subtests: pytest.Subtests) -> None:
    for token in ["", "two words", "line\r\nX-Other: 1", "é", "t" * 8193]:
        with subtests.test(token=token):
            with pytest.raises(ValueError, match="reporting token") as failure:
                AsyncReporter("http://127.0.0.1:9", token)
            assert token == "" or token not in str(failure.value)


@pytest.mark.parametrize("url", ["http://example.org", "ftp://example.org", "https://user:word@example.org"])
def test_secrets_are_sent_over_https_only(url: str) -> None:
    with pytest.raises(ValueError, match="base URL"):
        AsyncReporter(url, TOKEN)
    with pytest.raises(ValueError, match="base URL"):
        AsyncPublisher(url, INTEGRATION_ID, HMAC_SECRET)


@pytest.mark.parametrize("limits", [{"timeout_s": 0}, {"attempts_max": 0}, {"retry_wait_max_s": -1}])
def test_impossible_limits_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be above"):
        DeliveryLimits(**limits)


async def test_a_closed_reporter_does_not_connect(events: EventService, body: bytes) -> None:
    reporter = AsyncReporter(events.url, TOKEN)
    await reporter.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await reporter.report(body)
    assert events.bodies == []


async def test_many_reports_at_once_are_told_apart(events: EventService, issuer: Issuer, clock: FakeClock) -> None:
    bodies = [make_measurement(issuer, clock).body for _ in range(50)]
    async with AsyncReporter(events.url, TOKEN, clock=clock) as reporter:
        outcomes = await asyncio.gather(*(reporter.report(body) for body in [*bodies, *bodies]))
    assert (outcomes.count("recorded"), outcomes.count("duplicate")) == (50, 50)


async def test_a_publisher_signs_exactly_what_it_sends(events: EventService, clock: FakeClock, body: bytes) -> None:
    spaced = body.replace(b",", b" ,\n")
    events.add_faults(lose_answer)
    async with AsyncPublisher(events.url, INTEGRATION_ID, HMAC_SECRET, clock=clock) as publisher:
        assert await publisher.forward(spaced) == "duplicate"
    expected = hmac.new(HMAC_SECRET.encode(), spaced, hashlib.sha256).hexdigest()
    assert [request.headers["x-svc-signature"] for request in events.state.requests] == [f"sha256={expected}"] * 2
    assert events.bodies == [spaced, spaced]


def test_a_blocking_publisher_does_the_same(events: EventService, body: bytes) -> None:
    with Publisher(events.url, INTEGRATION_ID, HMAC_SECRET) as publisher:
        assert publisher.forward(body) == "recorded"
        assert HMAC_SECRET not in repr(publisher)


async def test_the_next_attempt_uses_a_rotated_secret(events: EventService, clock: FakeClock, body: bytes) -> None:
    secrets = iter((HMAC_SECRET, "xhm_" + "n" * 43))
    events.add_faults(lose_request)
    async with AsyncPublisher(events.url, INTEGRATION_ID, lambda: next(secrets), clock=clock) as publisher:
        await publisher.forward(body)
    assert len({request.headers["x-svc-signature"] for request in events.state.requests}) == 2


def test_a_malformed_secret_is_refused_and_not_shown(subtests: pytest.Subtests) -> None:
    for secret in ["", "xhm_short", "xak_" + "s" * 43, "xhm_" + "s" * 42 + "é"]:
        with subtests.test(secret=secret):
            with pytest.raises(ValueError, match="HMAC secret") as failure:
                AsyncPublisher("http://127.0.0.1:9", INTEGRATION_ID, secret)
            assert secret == "" or secret not in str(failure.value)
            with pytest.raises(ValueError, match="integration"):
                AsyncPublisher("http://127.0.0.1:9", "org_0123456789", HMAC_SECRET)


def test_every_reason_is_explained_and_answered() -> None:
    assert set(_EXPLANATIONS) == set(_ANSWERS) == set(get_args(DeliveryReason))
