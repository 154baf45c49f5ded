"""Calls to a private component that misbehaves: one deadline, one limit on bytes, declared responses only."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from structlog.testing import capture_logs
from support.outside.misbehaving_server import (
    Behaviour,
    MisbehavingServer,
    answer,
    dripping,
    endless,
    misbehaving_server,
    raw,
    silent,
    slow_headers,
)

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.private_call import PrivateChannel, PrivateComponent, PrivateRequest, PrivateResponse
from soundmark.kit.http.requests.private_endpoint import Method, PrivateEndpoint
from soundmark.kit.http.responses.problems import Kind, Problem, RateLimited, Unauthenticated, ValidationFailed

CREDENTIAL = "credential-of-the-tests"
PATIENCE_S = 30  # Generous, for a healthy component on a busy machine.
TIMEOUT_S = 0.5
BYTES_MAX = 64 * 1024
PROBLEM = "application/problem+json"


class ThingUnavailable(Problem):
    kind, code, title = Kind.UNAVAILABLE, "thing_unavailable", "Not now."


class ThingGone(Problem):
    kind, code, title = Kind.GONE, "thing_gone", "It is gone."


class Thing(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    a: int


class Page(BaseModel):
    organization_id: str
    limit: int
    before_id: str | None = None


READ = PrivateEndpoint("GET", "/v1/things/{thing_id}", Thing, problems=(ThingGone,))
CHANGE = PrivateEndpoint("POST", "/v1/things", Thing, (HTTPStatus.CREATED, HTTPStatus.OK), (ThingGone,))
RENDER = PrivateEndpoint("POST", "/render", bytes, media_type="audio/wav")
DELIVER = PrivateEndpoint("POST", "/v1/events", Thing, problems=(RateLimited, Unauthenticated, ValidationFailed))
THING = PrivateRequest(request_id="req_1", path={"thing_id": "thing_1"})


@asynccontextmanager
async def channel_to(url: str, timeout_s: float = PATIENCE_S) -> AsyncIterator[PrivateChannel]:
    component = PrivateComponent("thing", url, Secret(CREDENTIAL), ThingUnavailable)
    channel = PrivateChannel(component, caller="soundmark-test", timeout_s=timeout_s, bytes_max=BYTES_MAX)
    yield channel
    await channel.aclose()


async def fetch(
    behave: Behaviour,
    endpoint: PrivateEndpoint[Any] = READ,
    request: PrivateRequest = THING,
    timeout_s: float = PATIENCE_S,
) -> tuple[PrivateResponse, MisbehavingServer]:
    async with misbehaving_server(behave) as server, channel_to(server.url, timeout_s) as channel:
        return await channel.fetch(endpoint, request), server


async def read(behave: Behaviour) -> Thing:
    async with misbehaving_server(behave) as server, channel_to(server.url) as channel:
        return await channel.call(READ, THING)


async def failure(
    behave: Behaviour, timeout_s: float = PATIENCE_S, endpoint: PrivateEndpoint[Any] = READ
) -> tuple[str, int | None]:
    """Return the logged reason of a call that fails."""
    with capture_logs() as logged, pytest.raises(ThingUnavailable):
        await fetch(behave, endpoint, timeout_s=timeout_s)
    (entry,) = [entry for entry in logged if entry["event"] == "thing_call_failed"]
    return entry["reason"], entry["status"]


def sent_lines(server: MisbehavingServer) -> list[str]:
    (request,) = server.requests
    return request.partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")


async def test_a_response_is_read_into_its_closed_shape() -> None:
    assert await read(answer(b'{"a": 1}', media_type="Application/JSON; charset=utf-8")) == Thing(a=1)


@pytest.mark.parametrize("status", ["200 OK", "201 Created"])
async def test_each_declared_status_is_a_success(status: str) -> None:
    found, _ = await fetch(answer(b'{"a": 1}', status=status), CHANGE)
    assert found == PrivateResponse(int(status[:3]), "application/json", b'{"a": 1}')


async def test_a_sound_is_returned_as_bytes() -> None:
    found, _ = await fetch(answer(b"RIFF", media_type="audio/wav"), RENDER)
    assert found.body == b"RIFF"
    assert (await failure(answer(b"{}"), endpoint=RENDER)) == ("refused", 200)


async def test_the_component_gets_the_caller_the_request_id_and_the_deadline() -> None:
    request = PrivateRequest(request_id="req_1", operation_id="aud_1", body=Thing(a=1))
    _, server = await fetch(answer(b'{"a": 1}'), CHANGE, request, timeout_s=12.5)
    lines = sent_lines(server)
    assert lines[0] == "post /v1/things http/1.1"
    assert f"authorization: bearer {CREDENTIAL}" in lines
    assert "x-request-id: req_1" in lines
    assert "x-svc-operation-id: aud_1" in lines
    assert "x-svc-timeout-ms: 12500" in lines
    assert "x-svc-caller: soundmark-test" in lines
    assert not [line for line in lines if line.startswith("trace")], "outside of a trace"
    assert "content-type: application/json" in lines
    assert json.loads(server.requests[0].partition(b"\r\n\r\n")[2]) == {"a": 1}


async def test_without_an_operation_there_is_no_operation_header() -> None:
    _, server = await fetch(answer(b'{"a": 1}'))
    assert b"x-svc-operation-id" not in server.requests[0].lower()


async def test_a_read_has_its_query_and_no_body() -> None:
    """None is left out of the query; special characters are escaped."""
    query = Page(organization_id="a&b=c", limit=101)
    request = PrivateRequest(request_id="req_1", path={"thing_id": "thing_1"}, query=query)
    _, server = await fetch(answer(b'{"a": 1}'), READ, request)
    lines = sent_lines(server)
    assert lines[0] == "get /v1/things/thing_1?organization_id=a%26b%3dc&limit=101 http/1.1"
    assert not [line for line in lines if line.startswith("content-type:")]
    assert server.requests[0].endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_a_change_has_its_body_and_its_operation(method: Method) -> None:
    request = PrivateRequest(request_id="req_1", operation_id="aud_1", body=Thing(a=1))
    _, server = await fetch(answer(b'{"a": 1}'), PrivateEndpoint(method, "/v1/x", Thing), request)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(f"{method} /v1/x HTTP/1.1".encode())
    assert b"x-svc-operation-id: aud_1" in head.lower()
    assert json.loads(body) == {"a": 1}


async def test_bytes_are_forwarded_as_they_are_beside_our_credential() -> None:
    headers = {"x-svc-signature": "sha256=00", "content-type": "application/json; charset=latin-1"}
    request = PrivateRequest(request_id="req_1", body=b'{"a" : 1}\xff', headers=headers, query={"dry_run": ""})
    _, server = await fetch(answer(b'{"a": 1}'), DELIVER, request)
    assert server.requests[0].endswith(b'\r\n\r\n{"a" : 1}\xff')
    lines = sent_lines(server)
    assert lines[0] == "post /v1/events?dry_run= http/1.1"
    assert {"x-svc-signature: sha256=00", "content-type: application/json; charset=latin-1"} <= set(lines)
    assert "x-request-id: req_1" in lines
    assert f"authorization: bearer {CREDENTIAL}" in lines


@pytest.mark.parametrize(("idle_s", "connections"), [(0.5, 1), (2.5, 2)])
async def test_a_connection_that_the_server_may_be_closing_is_not_reused(
    monkeypatch: pytest.MonkeyPatch, idle_s: float, connections: int
) -> None:
    """uvicorn hangs up after five seconds; a request sent at that very moment is lost, and its outcome is unknown."""
    async with misbehaving_server(lasting) as server, channel_to(server.url) as channel:
        await channel.call(READ, THING)
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + idle_s)
        monkeypatch.setattr("httpcore2._async.http11.time", later)
        await channel.call(READ, THING)
    assert len(server.requests) == connections


async def lasting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer, and keep answering on the same connection."""
    while True:
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{"a": 1}')
        await reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize("behave", [silent, slow_headers, dripping], ids=lambda behave: behave.__name__)
async def test_the_deadline_is_for_the_whole_call(behave: Behaviour) -> None:
    """A server that sends a byte before each single timeout would hold the caller for ever."""
    started_s = time.monotonic()
    assert await failure(behave, TIMEOUT_S) == ("deadline", None)
    assert TIMEOUT_S * 0.9 < time.monotonic() - started_s < TIMEOUT_S + 20


async def test_the_limit_ends_a_body_while_it_streams() -> None:
    assert await failure(endless) == ("oversized", None)


async def test_a_response_is_not_requested_compressed() -> None:
    """The body is taken byte by byte as it arrives; a compressed sound would not be a sound."""
    _, server = await fetch(answer(b'{"a": 1}'))
    assert [line for line in sent_lines(server) if line.startswith("accept-encoding:")] == ["accept-encoding: identity"]


async def test_the_limit_is_exact() -> None:
    found, _ = await fetch(answer(b"x" * BYTES_MAX, media_type="audio/wav"), RENDER)
    assert len(found.body) == BYTES_MAX
    too_large = answer(b"x" * (BYTES_MAX + 1), media_type="audio/wav")
    assert await failure(too_large, endpoint=RENDER) == ("oversized", None)


async def test_anything_but_http_is_unreachable(subtests: pytest.Subtests) -> None:
    for name, data in {
        "nothing": b"",
        "not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
        "cut short": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{}",
        "broken chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "headers without end": b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 1_000_000,
    }.items():
        with subtests.test(name):
            assert await failure(raw(data)) == ("unreachable", None)


async def test_a_port_where_nobody_listens_is_unreachable() -> None:
    async with channel_to("http://127.0.0.1:9") as channel:
        with capture_logs() as logged, pytest.raises(ThingUnavailable):
            await channel.call(READ, THING)
    assert [entry["reason"] for entry in logged] == ["unreachable"]


async def test_a_redirect_is_not_followed() -> None:
    """The credential would go with it."""
    async with misbehaving_server(answer(b'{"a": 1}')) as elsewhere:
        location = f"HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere.url}/\r\ncontent-length: 0\r\n\r\n"
        assert await failure(raw(location.encode())) == ("refused", 307)
        assert elsewhere.requests == []


async def test_a_proxy_from_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with misbehaving_server(answer(b'{"a": 2}')) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        assert await read(answer(b'{"a": 1}')) == Thing(a=1)
        assert proxy.requests == []


async def test_a_call_is_not_repeated() -> None:
    """The component may have done the work without answering."""
    async with misbehaving_server(raw(b"")) as server, channel_to(server.url) as channel:
        with pytest.raises(ThingUnavailable):
            await channel.call(READ, THING)
        assert len(server.requests) == 1


async def test_a_body_of_another_shape_is_malformed(subtests: pytest.Subtests) -> None:
    for body in [
        *(b"", b"{", b'{"a": "\xff"}', b"[" * 60_000, b"1" * 60_000, b"[]", b"null", b'"text"', b"{}"),
        *(b'{"a": "1"}', b'{"a": 1, "b": 2}'),
    ]:
        with subtests.test(body[:30].decode("latin-1")):
            with capture_logs() as logged, pytest.raises(ThingUnavailable):
                await read(answer(body))
            assert [entry["reason"] for entry in logged] == ["malformed"]


async def test_an_undeclared_success_is_refused(subtests: pytest.Subtests) -> None:
    for status, media_type in [
        ("200 OK", "text/html"),
        ("200 OK", ""),
        ("200 OK", PROBLEM),
        ("201 Created", "application/json"),
    ]:
        with subtests.test(status=status, media_type=media_type):
            behave = answer(b'{"a": 1}', status=status, media_type=media_type)
            assert await failure(behave) == ("refused", int(status[:3]))


async def test_a_declared_problem_is_raised_by_its_code() -> None:
    with capture_logs() as logged, pytest.raises(ThingGone) as gone:
        await read(answer(b'{"code": "thing_gone", "detail": "secret"}', status="410 Gone", media_type=PROBLEM))
    assert (gone.value.detail, gone.value.errors, gone.value.headers, logged) == ("It is gone.", (), {}, [])


async def test_an_undeclared_problem_is_the_components_failure(subtests: pytest.Subtests) -> None:
    for status, media_type, body in [
        ("410 Gone", PROBLEM, b'{"code": "thing_lost"}'),
        ("409 Conflict", PROBLEM, b'{"code": "thing_gone"}'),
        ("410 Gone", "application/json", b'{"code": "thing_gone"}'),
        ("410 Gone", PROBLEM, b'{"code": ["thing_gone"]}'),
        ("410 Gone", PROBLEM, b"{}"),
        ("410 Gone", PROBLEM, b"thing_gone"),
        ("410 Gone", PROBLEM, b"\xff"),
        ("410 Gone", PROBLEM, b"[" * 60_000),
        ("401 No", PROBLEM, b'{"code": "unauthenticated"}'),
        ("503 No", PROBLEM, b'{"code": "deadline_passed"}'),
    ]:
        with subtests.test(status=status, media_type=media_type, body=body):
            assert await failure(answer(body, status=status, media_type=media_type)) == ("refused", int(status[:3]))


async def test_a_declared_refusal_names_what_was_refused_and_leaves_malformed_errors_out() -> None:
    errors = ["x", {"pointer": 7}, {"pointer": "/a", "message": "wrong"}, {"location": "attic", "pointer": "/b"}]
    errors.append({"location": "query", "pointer": "/c", "message": "unknown"})
    body = json.dumps({"code": "validation_failed", "errors": errors}).encode()
    with pytest.raises(ValidationFailed) as refused:
        await fetch(answer(body, status="422 No", media_type=PROBLEM), DELIVER)
    found = [(error.location, error.pointer, error.message) for error in refused.value.errors]
    assert found == [("body", "/a", "wrong"), ("query", "/c", "unknown")]


@pytest.mark.parametrize(("sent", "passed_on"), [("17", {"retry-after": "17"}), ("soon", {}), ("-1", {})])
async def test_a_declared_limit_says_when_to_retry(sent: str, passed_on: dict[str, str]) -> None:
    body = b'{"code": "rate_limited"}'
    head = f"HTTP/1.1 429 No\r\ncontent-type: {PROBLEM}\r\ncontent-length: {len(body)}\r\nretry-after: {sent}\r\n\r\n"
    with pytest.raises(RateLimited) as limited:
        await fetch(raw(head.encode() + body), DELIVER)
    assert limited.value.headers == passed_on


async def test_a_declared_401_asks_for_a_bearer() -> None:
    behave = answer(b'{"code": "unauthenticated"}', status="401 No", media_type=PROBLEM)
    with pytest.raises(Unauthenticated) as refused:
        await fetch(behave, DELIVER)
    assert refused.value.headers == {"www-authenticate": "Bearer"}


async def test_readiness_is_the_components_answer(subtests: pytest.Subtests) -> None:
    """A probe that fails is not logged: there is one every second."""
    for name, (behave, timeout_s, ready) in {
        "ready": (answer(b"{}"), PATIENCE_S, True),
        "not ready": (answer(b"{}", status="503 Service Unavailable"), PATIENCE_S, False),
        "silent": (silent, TIMEOUT_S, False),
        "gone": (raw(b""), PATIENCE_S, False),
    }.items():
        with subtests.test(name):
            with capture_logs() as logged:
                async with misbehaving_server(behave) as server, channel_to(server.url, timeout_s) as channel:
                    assert await channel.is_ready() is ready
                    assert server.requests[0].startswith(b"GET /readyz ")
            assert logged == []


async def test_calls_do_not_wait_for_each_other() -> None:
    async with misbehaving_server(silent) as server, channel_to(server.url, TIMEOUT_S) as channel:
        started_s = time.monotonic()
        failures = await asyncio.gather(*(channel.call(READ, THING) for _ in range(10)), return_exceptions=True)
        assert [type(found) for found in failures] == [ThingUnavailable] * 10
        assert time.monotonic() - started_s < TIMEOUT_S + 20
