"""The reference backend: what it forwards, what it answers, and how it is configured."""

import asyncio
import json
import logging
from typing import Any

import pytest
from soundmark_sdk import AsyncReporter, DeliveryFailure
from soundmark_sdk.delivery import DeliveryLimits
from soundmark_sdk.publisher import AsyncPublisher, Backend, ReportingTokens, from_environment
from soundmark_sdk.publisher import backend as backend_module

from .event_service import HMAC_SECRET
from .issuer import INTEGRATION_ID, Issuer, compact
from .issuing_service import answer_with, lose_answer, lose_request, make_problem
from .measurements import CONSENT, make_measurement
from .reference_backend import (
    BACKEND_URL,
    KEY,
    OTHER_INTEGRATION,
    World,
)
from .stand_ins import FakeClock, make_response


async def test_an_accepted_token_forwards_the_bytes_unchanged(world: World, body: bytes) -> None:
    spaced = body.replace(b'":', b'": ')
    answer = await world.post(spaced)
    event_id = json.loads(body)["event_id"]
    assert (answer.status_code, answer.json()) == (201, {"event_id": event_id, "status": "recorded"})
    assert answer.headers["cache-control"] == "no-store"
    again = await world.post(spaced)
    assert (again.status_code, again.json()) == (200, {"event_id": event_id, "status": "duplicate"})
    assert world.events.bodies == [spaced, spaced]
    # The receiver's token is not forwarded.
    assert all("authorization" not in request.headers for request in world.events.state.requests)


def change_event(body: bytes, **changes: Any) -> bytes:
    event = {**json.loads(body), **changes}
    return compact({name: value for name, value in event.items() if value is not ...})


NO_EVENTS: dict[str, dict[str, Any]] = {
    "no event id": {"event_id": ...},
    "a UUID for an event id": {"event_id": "evt_123e4567-e89b-12d3-a456-426614174000"},
    "another integration": {"integration_id": OTHER_INTEGRATION},
    "another Code than its proof's": {"xr_id": "xr_ABCDEF0123456789abcdef"},
    "no moment": {"occurred_at": "yesterday"},
    "a moment that is a number": {"occurred_at": 1},
    "a device for a class": {"receiver_class": "iPhone 17"},
    "a class that is a list": {"receiver_class": ["phone"]},
    "an e-mail for a token": {"measurement_token": "ada@example.org"},
    "a place for a country": {"country": "36.8,10.2"},
    "no proof": {"proof": ...},
    "half a proof": {"proof": {"proof_id": "prf_0123456789abcdefABCDEF"}},
    "an address": {"ip": "192.0.2.1"},
    "a campaign": {"campaign_id": "cmp_0123456789abcdefABCDEF"},
}


async def test_an_event_of_another_shape_or_integration_is_not_signed(
    world: World, body: bytes, subtests: pytest.Subtests
) -> None:
    """Otherwise the backend would sign anything that a receiver sends."""
    for name, changes in NO_EVENTS.items():
        with subtests.test(name):
            answer = await world.post(change_event(body, **changes))
            assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
            assert (world.secret.count, world.events.bodies) == (0, [])


@pytest.mark.parametrize("no_json", [b"", b"{", b"[]", b"null", b"\xff", b'{"a":1,"a":1}', b"[" * 9000])
async def test_a_body_that_is_not_json_is_not_signed(world: World, no_json: bytes) -> None:
    assert (await world.post(no_json)).status_code == 422
    assert world.secret.count == 0


@pytest.mark.parametrize("change", [{"country": ...}, {"country": None}, {"occurred_at": "2026-11-20T11:00:30+01:00"}])
async def test_other_spellings_of_an_event_are_accepted(world: World, body: bytes, change: dict[str, Any]) -> None:
    assert (await world.post(change_event(body, **change))).status_code == 201


async def test_an_event_is_at_most_16_kib(world: World, body: bytes) -> None:
    assert (await world.post(body + b" " * (16 * 1024 - len(body)))).status_code == 201
    answer = await world.post(body + b" " * (16 * 1024 + 1 - len(body)))
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
async def test_only_json_is_taken(world: World, body: bytes, content_type: str) -> None:
    answer = await world.post(body, headers={"Content-Type": content_type})
    assert (answer.status_code, world.secret.count) == (415, 0)
    assert (await world.post(body, headers={"Content-Type": "Application/JSON; charset=utf-8"})).status_code == 201


async def test_an_endless_body_is_cut_short(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_module, "_READ_S", 0.05)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    token = world.tokens.issue(CONSENT)
    headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/json")]
    await world.backend({"type": "http", "path": "/v1/events", "method": "POST", "headers": headers}, receive, send)
    assert (sent[0]["status"], world.secret.count) == (408, 0)


async def test_nothing_is_forwarded_for_a_receiver_that_hung_up(world: World, body: bytes) -> None:
    messages = iter(({"type": "http.request", "body": body, "more_body": True}, {"type": "http.disconnect"}))

    async def receive() -> Any:
        return next(messages)

    async def send(_: Any) -> None:
        return

    token = world.tokens.issue(CONSENT)
    headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/json")]
    await world.backend({"type": "http", "path": "/v1/events", "method": "POST", "headers": headers}, receive, send)
    assert world.secret.count == 0


async def test_audience_is_asked_again_with_the_same_bytes(world: World, body: bytes) -> None:
    world.events.add_faults(
        lose_request, lose_answer, answer_with(make_problem(503, "audience_unavailable", Retry_After="3"))
    )
    assert (await world.post(body)).json()["status"] == "duplicate"
    assert world.events.bodies == [body] * 4
    assert world.clock.slept_s[-1] == 3


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (make_problem(401, "unauthenticated"), 503, "audience_unavailable"),
        (make_problem(403, "organization_suspended"), 403, "organization_suspended"),
        (make_problem(409, "proof_replayed"), 409, "proof_replayed"),
        (make_problem(409, "event_conflict"), 409, "event_conflict"),
        (make_problem(409, "integration_revoked"), 409, "integration_revoked"),
        (make_problem(409, "entitlement_required"), 409, "entitlement_required"),
        (make_problem(422, "proof_invalid"), 422, "proof_invalid"),
        (make_problem(422, "validation_failed"), 422, "validation_failed"),
        (make_problem(429, "event_quota_exceeded", Retry_After="86400"), 429, "event_quota_exceeded"),
        (make_problem(503, "audience_unavailable", Retry_After="600"), 503, "audience_unavailable"),
        (make_response(302, Location="http://127.0.0.1:9"), 503, "audience_unavailable"),
        (make_response(200, b"[]"), 503, "audience_unavailable"),
    ],
)
async def test_a_receiver_gets_only_the_reasons_that_concern_it(
    world: World, body: bytes, answer: bytes, status: int, code: str
) -> None:
    world.events.add_faults(*[answer_with(answer)] * 9)
    response = await world.post(body)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert "server text" not in response.text
    if status in {429, 503}:
        assert int(response.headers["retry-after"]) in {1, 600, 86400}


async def test_receivers_beyond_the_limit_are_asked_to_try_again(
    world: World, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_module, "_FORWARDING_MAX", 0)
    answer = await world.post(body)
    assert (answer.status_code, answer.headers["retry-after"], world.secret.count) == (503, "1", 0)


async def test_a_receiver_reports_through_the_backend(world: World, issuer: Issuer, clock: FakeClock) -> None:
    measurement = make_measurement(issuer, clock)

    def fresh() -> str:
        return world.tokens.issue(CONSENT)

    async with AsyncReporter(BACKEND_URL, fresh, transport=world.transport, clock=clock) as reporter:
        assert [await reporter.report(measurement) for _ in range(2)] == ["recorded", "duplicate"]
    late = world.tokens.issue(CONSENT)
    clock.advance(300)
    async with AsyncReporter(BACKEND_URL, late, transport=world.transport, clock=clock) as reporter:
        with pytest.raises(DeliveryFailure) as failure:
            await reporter.report(measurement)
    assert failure.value.reason == "unauthenticated"


async def test_no_log_holds_anything_secret(world: World, body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    event, token = json.loads(body), world.tokens.issue(CONSENT)
    await world.post(body, token)
    await world.post(body, "x" + token)
    world.events.add_faults(answer_with(make_problem(401, "unauthenticated")))
    await world.post(body, token)
    secrets = [HMAC_SECRET, KEY.decode(), token, event["event_id"], event["measurement_token"]]
    for hidden in [*secrets, event["proof"]["signature"], event["proof"]["proof_id"]]:
        assert hidden not in caplog.text
    assert "refused a reporting session: malformed" in caplog.text
    assert "an event was not forwarded: unauthenticated" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("HEAD", "/healthz", 200),
        ("POST", "/healthz", 404),
        ("GET", "/v1/events", 405),
        ("GET", "/", 404),
        ("POST", "/v1/events/", 404),
    ],
)
async def test_the_backend_has_two_routes(world: World, method: str, path: str, status: int) -> None:
    assert (await world.client.request(method, path)).status_code == status


async def test_the_connections_close_with_the_server(world: World, body: bytes) -> None:
    messages = iter(({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}))
    sent: list[str] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await world.backend({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    with pytest.raises(RuntimeError, match="closed"):
        await world.publisher.forward(body)
    with pytest.raises(NotImplementedError):
        await world.backend({"type": "websocket"}, receive, send)


def test_the_publisher_and_the_tokens_belong_to_one_integration(clock: FakeClock) -> None:
    publisher = AsyncPublisher("http://127.0.0.1:9", INTEGRATION_ID, HMAC_SECRET, limits=DeliveryLimits())
    with pytest.raises(ValueError, match="same integration"):
        Backend(publisher, ReportingTokens(KEY, OTHER_INTEGRATION, clock=clock))


ENVIRONMENT = {
    "PUBLISHER_AUDIENCE_URL": "https://api.example.org",
    "PUBLISHER_INTEGRATION_ID": INTEGRATION_ID,
    "PUBLISHER_HMAC_SECRET": HMAC_SECRET,
    "PUBLISHER_REPORTING_KEY": KEY.decode(),
}


def test_the_environment_describes_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(from_environment(ENVIRONMENT), Backend)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert isinstance(from_environment(), Backend)


def test_missing_variables_are_named(subtests: pytest.Subtests) -> None:
    for name in ENVIRONMENT:
        with subtests.test(name=name):
            with pytest.raises(ValueError, match=name):
                from_environment({**ENVIRONMENT, name: ""})
            with pytest.raises(ValueError, match=r".") as failure:
                from_environment({**ENVIRONMENT, name: "http://a.b/?wrong"})
            assert "wrong" not in str(failure.value)
