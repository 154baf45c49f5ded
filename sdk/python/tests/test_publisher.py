"""The reference backend: which receivers it admits, what it forwards, and when it reads the secret."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx2
import jwt
import pytest
from soundmark_sdk import AsyncReporter, DeliveryFailure
from soundmark_sdk.delivery import DeliveryLimits
from soundmark_sdk.publisher import AsyncPublisher, Backend, Consent, ReportingTokens, SessionRefused, from_environment
from soundmark_sdk.publisher import backend as backend_module

from .event_service import HMAC_SECRET, EventService
from .issuer import INTEGRATION_ID, NOW, Issuer, base64url, compact
from .issuing_service import answer_with, lose_answer, lose_request, make_problem
from .measurements import CONSENT, make_measurement
from .stand_ins import FakeClock, make_response

KEY = b"a reporting key of the tests, which has more than 32 bytes"
OTHER_INTEGRATION = "int_ABCDEF0123456789abcdef"
BACKEND_URL = "http://127.0.0.1:8090"


class Touched:
    """An HMAC secret that counts how often it is read."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return HMAC_SECRET


class World:
    """A backend in front of a service that accepts events."""

    def __init__(self, events: EventService, clock: FakeClock) -> None:
        self.events, self.clock, self.secret = events, clock, Touched()
        self.tokens = ReportingTokens(KEY, INTEGRATION_ID, clock=clock)
        self.publisher = AsyncPublisher(events.url, INTEGRATION_ID, self.secret, clock=clock)
        self.backend = Backend(self.publisher, self.tokens)
        self.transport = httpx2.ASGITransport(app=self.backend)
        self.client = httpx2.AsyncClient(transport=self.transport, base_url=BACKEND_URL)

    async def post(self, body: bytes, token: str | None = None, **options: Any) -> httpx2.Response:
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.tokens.issue(CONSENT) if token is None else token}",
            **options.pop("headers", {}),
        }
        return await self.client.post("/v1/events", content=body, headers=headers, **options)


@pytest.fixture
async def world(events: EventService, clock: FakeClock) -> AsyncIterator[World]:
    world = World(events, clock)
    yield world
    await world.publisher.aclose()


@pytest.fixture
def body(issuer: Issuer, clock: FakeClock) -> bytes:
    return make_measurement(issuer, clock).body


def make_claims(**changes: Any) -> dict[str, Any]:
    now = int(NOW.timestamp())
    standard = {
        "iat": now,
        "exp": now + 300,
        "svc_audience_consent": True,
        "svc_audience_integration_id": INTEGRATION_ID,
        **changes,
    }
    return {name: value for name, value in standard.items() if value is not ...}


def sign_token(key: bytes = KEY, algorithm: str = "HS256", **changes: Any) -> str:
    return jwt.encode(make_claims(**changes), key, algorithm=algorithm)


def make_unsigned_token() -> str:
    return ".".join((base64url(compact({"alg": "none", "typ": "JWT"})), base64url(compact(make_claims())), ""))


SECONDS = int(NOW.timestamp())
REFUSED: dict[str, Callable[[], str]] = {
    "nothing": lambda: "",
    "no token": lambda: "not-a-token",
    "text of another script": lambda: "é",
    "too long": lambda: sign_token(more="m" * 8192),
    "another key": lambda: sign_token(b"k" * 32),
    "another algorithm of the same key": lambda: sign_token(
        algorithm="HS512", key=KEY + b"and as long as HS512 wants it"
    ),
    "no signature": make_unsigned_token,
    "a signature cut off": lambda: sign_token()[:-4],
    "claims of another token": lambda: ".".join(
        (sign_token().split(".")[0], sign_token(exp=SECONDS + 9).split(".")[1], "x")
    ),
    "no iat": lambda: sign_token(iat=...),
    "no exp": lambda: sign_token(exp=...),
    "no consent": lambda: sign_token(svc_audience_consent=...),
    "consent is false": lambda: sign_token(svc_audience_consent=False),
    "consent is 1": lambda: sign_token(svc_audience_consent=1),
    "consent is text": lambda: sign_token(svc_audience_consent="true"),
    "no integration": lambda: sign_token(svc_audience_integration_id=...),
    "another integration": lambda: sign_token(svc_audience_integration_id=OTHER_INTEGRATION),
    "integrations, ours among them": lambda: sign_token(svc_audience_integration_id=[INTEGRATION_ID]),
    "lives too long": lambda: sign_token(exp=SECONDS + 301),
    "lives for no time": lambda: sign_token(exp=SECONDS),
    "ends before it begins": lambda: sign_token(exp=SECONDS - 10),
    "begins later": lambda: sign_token(iat=SECONDS + 12, exp=SECONDS + 200),
    "has ended": lambda: sign_token(iat=SECONDS - 300, exp=SECONDS),
    "not before later": lambda: sign_token(nbf=SECONDS + 60),
    "exp is text": lambda: sign_token(exp=str(SECONDS + 60)),
    "exp is true": lambda: sign_token(exp=True),
    "iat is a fraction": lambda: sign_token(iat=SECONDS + 0.5),
    "exp is beyond every clock": lambda: sign_token(exp=10**400),
    "for another audience": lambda: sign_token(aud="https://elsewhere.example.org"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_refused_token_reads_no_secret_and_forwards_nothing(world: World, body: bytes, name: str) -> None:
    token = REFUSED[name]()
    headers = {"Authorization": f"Bearer {token}".encode()}
    answer = await world.post(body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert (world.secret.count, world.events.bodies) == (0, [])
    assert not token or token not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "Basic eA==")],
        [("authorization", "Bearer {}"), ("authorization", "Bearer {}")],
        [("authorization", "{}")],
        [("cookie", "token={}")],
    ],
    ids=str,
)
async def test_a_token_is_accepted_in_one_header_only(
    world: World, body: bytes, headers: list[tuple[str, str]]
) -> None:
    token = world.tokens.issue(CONSENT)
    sent = [("content-type", "application/json"), *((name, value.format(token)) for name, value in headers)]
    answer = await world.client.post("/v1/events", content=body, headers=sent)
    assert (answer.status_code, world.secret.count) == (401, 0)


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


async def test_a_reporting_token_lives_for_at_most_five_minutes(world: World, body: bytes, clock: FakeClock) -> None:
    token = world.tokens.issue(CONSENT)
    clock.advance(299)
    assert (await world.post(body, token)).status_code == 201
    clock.advance(1)
    assert (await world.post(body, token)).status_code == 401


async def test_the_clock_of_another_machine_may_be_slightly_ahead(world: World, body: bytes) -> None:
    assert (await world.post(body, sign_token(iat=SECONDS + 10, exp=SECONDS + 100))).status_code == 201


async def test_other_claims_are_ignored(world: World, body: bytes) -> None:
    assert (await world.post(body, sign_token(iss="https://id.example.org", jti="1", nbf=SECONDS))).status_code == 201


def test_a_reporting_token_names_nobody(clock: FakeClock) -> None:
    token = ReportingTokens(KEY, INTEGRATION_ID, clock=clock).issue(CONSENT, lifetime=timedelta(seconds=60))
    assert json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==")) == make_claims(exp=SECONDS + 60)
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}


def test_a_token_is_issued_for_a_consent_that_covers_it(clock: FakeClock) -> None:
    tokens = ReportingTokens(KEY, INTEGRATION_ID, clock=clock)
    for consent in (Consent(OTHER_INTEGRATION, NOW), Consent(INTEGRATION_ID, NOW + timedelta(seconds=1))):
        with pytest.raises(ValueError, match="does not cover"):
            tokens.issue(consent)
    for lifetime_s in (0, 0.5, -1, 300.5, 301):
        with pytest.raises(ValueError, match="5 minutes"):
            tokens.issue(CONSENT, lifetime=timedelta(seconds=lifetime_s))


def test_a_short_key_or_a_malformed_integration_id_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        ReportingTokens(b"k" * 31, INTEGRATION_ID)
    with pytest.raises(ValueError, match="integration"):
        ReportingTokens(KEY, "int_short")
    assert KEY.decode() not in repr(ReportingTokens(KEY, INTEGRATION_ID))


@pytest.mark.parametrize(
    ("token", "refusal"),
    [
        ("nothing", "malformed"),
        ("has ended", "expired"),
        ("consent is 1", "consent_missing"),
        ("another integration", "other_integration"),
    ],
)
def test_the_publisher_can_tell_refusals_apart(clock: FakeClock, token: str, refusal: str) -> None:
    with pytest.raises(SessionRefused) as failure:
        ReportingTokens(KEY, INTEGRATION_ID, clock=clock).check(REFUSED[token]())
    assert failure.value.refusal == refusal


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


@pytest.mark.parametrize("name", NO_EVENTS)
async def test_an_event_of_another_shape_or_integration_is_not_signed(world: World, body: bytes, name: str) -> None:
    """Otherwise the backend would sign anything that a receiver sends."""
    answer = await world.post(change_event(body, **NO_EVENTS[name]))
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


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_missing_variables_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        from_environment({**ENVIRONMENT, name: ""})
    with pytest.raises(ValueError, match=r".") as failure:
        from_environment({**ENVIRONMENT, name: "http://a.b/?wrong"})
    assert "wrong" not in str(failure.value)
