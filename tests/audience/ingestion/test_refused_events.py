"""Refused events are limited by the sender's address if they arrive directly; Core limits those it forwards."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import structlog
from support.api.core_client import Answer
from support.audience.client import (
    CREDENTIAL,
    AudienceApi,
    audience_settings,
    entitlement_body,
    running_audience,
)
from support.audience.event_publisher import Publisher, make_publisher
from support.tracing.recorded import recording

from soundmark.kit.crypto.secret import Secret

LIMIT, WINDOW_S = 3, 10
NO_SIGNATURE = {"X-Svc-Signature": "sha256=" + "0" * 64}
PEER = "203.0.113.77"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


@dataclass(frozen=True)
class Sender:
    """A caller who delivers from one address."""

    source: Publisher
    peer: str = PEER
    credential: str | None = None

    async def deliver(self, body: Any = None, **headers: str) -> Answer:
        """Deliver an event, signed unless the headers say otherwise."""
        content = (
            body if isinstance(body, bytes) else json.dumps(self.source.event() if body is None else body).encode()
        )
        sent = {"Content-Type": "application/json", "X-Svc-Signature": self.source.signature(content), **headers}
        if self.credential is not None:
            sent["Authorization"] = f"Bearer {self.credential}"
        transport = httpx2.ASGITransport(app=self.source.api.app, client=(self.peer, 40000))  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
        async with httpx2.AsyncClient(transport=transport, base_url="http://audience.test") as client:
            answer = await client.post("/v1/events", content=content, headers=sent)
        return Answer(answer.status_code, answer.headers, answer.content)

    async def statuses(self, count: int, body: Any = None, **headers: str) -> list[int]:
        return [(await self.deliver(body, **(headers or NO_SIGNATURE))).status for _ in range(count)]


@pytest.fixture
async def limited(audience_url: Secret) -> AsyncIterator[AudienceApi]:
    """An Audience that allows three refusals in ten seconds."""
    changes = {"refusal_rate_limit": LIMIT, "refusal_rate_window_s": WINDOW_S, "trusted_proxies": "10.0.0.0/8"}
    async with running_audience(audience_settings(audience_url, **changes)) as api:
        yield api


async def test_after_one_refusal_too_many_the_sender_has_to_wait(limited: AudienceApi) -> None:
    """Also the publisher at this address, until the window ends; nobody at another address."""
    source = await make_publisher(limited)
    sender = Sender(source)
    assert (await sender.deliver()).status == 201

    assert await sender.statuses(LIMIT + 1) == [401] * LIMIT + [429]
    waiting = await sender.deliver()

    assert (waiting.status, waiting.json["code"]) == (429, "rate_limited")
    assert 1 <= int(waiting.headers["retry-after"]) <= WINDOW_S
    assert (await Sender(source, "203.0.113.78").deliver()).status == 201
    limited.clock.advance(seconds=WINDOW_S)
    assert (await sender.deliver()).status == 201


async def test_malformed_json_counts_like_an_unsigned_event(limited: AudienceApi) -> None:
    sender = Sender(await make_publisher(limited))

    assert await sender.statuses(LIMIT + 1, b"{") == [400] * LIMIT + [429]


async def test_an_event_signed_by_its_publisher_is_not_counted(limited: AudienceApi) -> None:
    """However wrong the event is: a known publisher is limited by its quota."""
    source = await make_publisher(limited)
    sender = Sender(source)

    for _ in range(2 * LIMIT):
        assert (await sender.deliver({**source.event(), "country": "nowhere"})).status == 422
    assert (await sender.deliver()).status == 201


async def test_an_event_forwarded_by_core_is_not_counted_here(limited: AudienceApi) -> None:
    """All of it comes from Core's address: one guessing caller would shut out every publisher that uses Core."""
    source = await make_publisher(limited)
    core = Sender(source, credential=CREDENTIAL)

    assert await core.statuses(3 * LIMIT) == [401] * 3 * LIMIT
    assert (await core.deliver()).status == 201
    assert await Sender(source, credential=CREDENTIAL + "x").statuses(LIMIT + 1) == [401] * LIMIT + [429]
    assert (await core.deliver()).status == 201, "nor is it held up by others at its address"


async def test_addresses_are_read_as_elsewhere(limited: AudienceApi) -> None:
    source = await make_publisher(limited)
    forwarded = {**NO_SIGNATURE, "X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
    await Sender(source, "10.0.0.1").statuses(LIMIT + 1, **forwarded)

    assert (await Sender(source, "203.0.113.9").deliver()).status == 429
    assert (await Sender(source, "10.0.0.1").deliver()).status == 201
    assert await Sender(source, "2001:db8:1:2::1").statuses(LIMIT + 1) == [401] * LIMIT + [429]
    assert (await Sender(source, "2001:db8:1:2:9::").deliver()).status == 429
    assert (await Sender(source, "2001:db8:1:3::1").deliver()).status == 201


async def test_a_refusal_is_logged_with_the_digest_of_the_address_and_never_with_the_address(
    limited: AudienceApi,
) -> None:
    sender = Sender(await make_publisher(limited))
    with structlog.testing.capture_logs() as logged:
        await sender.statuses(2 * LIMIT, **NO_SIGNATURE, Traceparent=f"00-{TRACE_ID}-00f067aa0ba902b7-00")

    refused = [entry for entry in logged if entry["event"] == "event_refused"]
    assert [entry["code"] for entry in refused] == ["unauthenticated"] * LIMIT
    (limited_once,) = (entry for entry in logged if entry["event"] == "refusals_limited")
    assert {entry["address"] for entry in refused} == {limited_once["address"]}
    assert len(limited_once["address"]) == 32
    assert {entry["trace_id"] for entry in refused} == {TRACE_ID}
    assert len({entry["request_id"] for entry in refused}) == LIMIT
    assert PEER not in repr(logged)


async def test_of_signed_events_only_those_beyond_the_quota_are_logged(limited: AudienceApi) -> None:
    """With their integration, whose publisher may ask why; the other refusals are the publisher's own mistakes."""
    source = await make_publisher(limited, mode="contract", entitlement=entitlement_body(monthly_event_quota=1))
    sender = Sender(source)
    assert (await sender.deliver()).status == 201

    with structlog.testing.capture_logs() as logged:
        assert (await sender.deliver({**source.event(), "country": "nowhere"})).status == 422
        assert (await sender.deliver()).json["code"] == "event_quota_exceeded"

    (refused,) = (entry for entry in logged if entry["event"] == "event_refused")
    assert (refused["code"], refused["caller"]) == ("event_quota_exceeded", source.integration.id)
    assert len(refused["address"]) == 32


async def test_core_and_trusted_proxies_decide_that_an_event_is_recorded(
    audience_url: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publisher chooses the id of the trace, and no more."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    settings = audience_settings(audience_url, trusted_proxies="10.0.0.0/8")
    with recording() as recorded:
        async with running_audience(settings) as api:
            source = await make_publisher(api)
            for number, sender in enumerate(
                [Sender(source), Sender(source, "10.0.0.1"), Sender(source, credential=CREDENTIAL)], start=1
            ):
                trace = {"Traceparent": f"00-{number:032x}-00f067aa0ba902b7-01"}
                assert (await sender.deliver(**trace)).status == 201
    for name in ("POST /v1/events", "INSERT INTO events"):
        spans = [span for span in recorded.spans if span.name == name]
        assert [span.context.trace_id for span in spans if span.context] == [2, 3]
