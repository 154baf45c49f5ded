"""Calls to a private component that misbehaves: one deadline, one ceiling, no surprise."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Literal

import pytest
from support.misbehaving_server import (
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

from soundmark.kit.private_call import PrivateAnswer, PrivateCallFailed, PrivateChannel
from soundmark.kit.secret import Secret

CREDENTIAL = "credential-of-the-tests"
PATIENCE_S = 30  # A good component on a busy machine is given its time.
TIMEOUT_S = 0.5
BYTES_MAX = 64 * 1024


@asynccontextmanager
async def channel_to(url: str, timeout_s: float = PATIENCE_S) -> AsyncIterator[PrivateChannel]:
    channel = PrivateChannel(url, Secret(CREDENTIAL), timeout_s=timeout_s, bytes_max=BYTES_MAX)
    yield channel
    await channel.aclose()


async def call(
    behave: Behaviour, *, operation_id: str | None = None, timeout_s: float = PATIENCE_S
) -> tuple[PrivateAnswer, MisbehavingServer]:
    async with misbehaving_server(behave) as server, channel_to(server.url, timeout_s) as channel:
        return await channel.post("/render", {"frame": "ä"}, request_id="req_1", operation_id=operation_id), server


async def failure(behave: Behaviour, timeout_s: float = PATIENCE_S) -> str:
    with pytest.raises(PrivateCallFailed) as failed:
        await call(behave, timeout_s=timeout_s)
    return failed.value.reason


async def test_an_answer_comes_whole() -> None:
    found, _ = await call(answer(b'{"a": 1}', media_type="Application/JSON; charset=utf-8", status="201 Created"))
    assert found == PrivateAnswer(201, "application/json", b'{"a": 1}')
    assert found.json_object() == {"a": 1}


async def test_the_component_receives_the_credential_and_the_request_id() -> None:
    _, server = await call(answer(b"{}"), operation_id="aud_1")
    (request,) = server.requests
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line.lower() for line in head.decode().split("\r\n")]
    assert lines[0] == "post /render http/1.1"
    assert f"authorization: bearer {CREDENTIAL}" in lines
    assert "x-request-id: req_1" in lines
    assert "x-svc-operation-id: aud_1" in lines
    assert "content-type: application/json" in lines
    assert json.loads(body) == {"frame": "ä"}


async def test_without_an_operation_there_is_no_operation_header() -> None:
    _, server = await call(answer(b"{}"))
    assert b"x-svc-operation-id" not in server.requests[0].lower()


async def test_a_question_has_its_query_and_no_body() -> None:
    """What is None is left out; what is special in a value is escaped."""
    async with misbehaving_server(answer(b"{}")) as server, channel_to(server.url) as channel:
        query = {"organization_id": "a&b=c", "limit": 101, "before_id": None}
        await channel.send("GET", "/v1/x", query=query, request_id="req_1")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "get /v1/x?organization_id=a%26b%3dc&limit=101 http/1.1"
    assert not [line for line in lines if line.startswith("content-type:")]
    assert body == b""


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_a_change_has_its_body_and_its_operation(method: Literal["PATCH", "PUT"]) -> None:
    async with misbehaving_server(answer(b"{}")) as server, channel_to(server.url) as channel:
        await channel.send(method, "/v1/x", {"a": 1}, request_id="req_1", operation_id="aud_1")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(f"{method} /v1/x HTTP/1.1".encode())
    assert b"x-svc-operation-id: aud_1" in head.lower()
    assert json.loads(body) == {"a": 1}


async def test_what_is_handed_on_is_handed_on_as_it_is_beside_our_credential() -> None:
    content = b'{"a" : 1}\xff'
    headers = {"x-svc-signature": "sha256=00", "content-type": "application/json; charset=latin-1"}
    async with misbehaving_server(answer(b"{}")) as server, channel_to(server.url) as channel:
        await channel.forward("/v1/events", content, headers, request_id="req_1")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert body == content
    lines = head.decode().lower().split("\r\n")
    assert {"x-svc-signature: sha256=00", "content-type: application/json; charset=latin-1"} <= set(lines)
    assert "x-request-id: req_1" in lines
    assert f"authorization: bearer {CREDENTIAL}" in lines


@pytest.mark.parametrize(("idle_s", "connections"), [(0.5, 1), (2.5, 2)])
async def test_a_connection_that_the_other_side_may_be_closing_is_not_used(
    monkeypatch: pytest.MonkeyPatch, idle_s: float, connections: int
) -> None:
    """uvicorn hangs up after five seconds; what is sent at that very moment is lost, and nobody knows what was done."""
    async with misbehaving_server(lasting) as server, channel_to(server.url) as channel:
        await channel.send("GET", "/v1/x", request_id="req_1")
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + idle_s)
        monkeypatch.setattr("httpcore2._async.http11.time", later)
        await channel.send("GET", "/v1/x", request_id="req_2")
    assert len(server.requests) == connections


async def lasting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers, and goes on answering on the same connection."""
    while True:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
        await reader.readuntil(b"\r\n\r\n")


async def test_an_answer_says_when_to_ask_again() -> None:
    data = b"HTTP/1.1 429 No\r\ncontent-type: application/json\r\ncontent-length: 2\r\nretry-after: 17\r\n\r\n{}"
    found, _ = await call(raw(data))
    assert (found.status, found.retry_after) == (429, "17")


@pytest.mark.parametrize("behave", [silent, slow_headers, dripping], ids=lambda behave: behave.__name__)
async def test_the_deadline_is_for_the_whole_call(behave: Behaviour) -> None:
    """A server that sends a byte before every single timeout would hold the caller for ever."""
    started_s = time.monotonic()
    assert await failure(behave, TIMEOUT_S) == "deadline"
    assert TIMEOUT_S * 0.9 < time.monotonic() - started_s < TIMEOUT_S + 20


async def test_the_ceiling_ends_a_body_while_it_streams() -> None:
    assert await failure(endless) == "oversized"


async def test_a_request_does_not_accept_compression() -> None:
    """It is taken byte by byte as it comes: what something in between packed would be a sound that is none."""
    _, server = await call(answer(b"{}"))
    lines = server.requests[0].decode().lower().split("\r\n")
    assert [line for line in lines if line.startswith("accept-encoding:")] == ["accept-encoding: identity"]


async def test_the_ceiling_is_exact() -> None:
    found, _ = await call(answer(b"x" * BYTES_MAX))
    assert len(found.body) == BYTES_MAX
    assert await failure(answer(b"x" * (BYTES_MAX + 1))) == "oversized"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 1_000_000,
    ],
    ids=["nothing", "not HTTP", "cut short", "broken chunks", "headers without end"],
)
async def test_what_is_no_http_is_unreachable(data: bytes) -> None:
    assert await failure(raw(data)) == "unreachable"


async def test_a_port_where_nobody_listens_is_unreachable() -> None:
    async with channel_to("http://127.0.0.1:9") as channel:
        with pytest.raises(PrivateCallFailed, match="unreachable"):
            await channel.post("/render", {}, request_id="r")


async def test_a_redirect_is_not_followed() -> None:
    """The credential would go with it."""
    async with misbehaving_server(answer(b"{}")) as elsewhere:
        location = f"HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere.url}/\r\ncontent-length: 0\r\n\r\n"
        found, _ = await call(raw(location.encode()))
        assert (found.status, elsewhere.requests) == (307, [])


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with misbehaving_server(answer(b"{}")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        assert (await call(answer(b'{"direct": true}')))[0].json_object() == {"direct": True}
        assert proxy.requests == []


async def test_a_call_is_not_repeated() -> None:
    """The component may have done what it did not answer."""
    async with misbehaving_server(raw(b"")) as server, channel_to(server.url) as channel:
        with pytest.raises(PrivateCallFailed):
            await channel.post("/render", {}, request_id="r")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("media_type", "body", "reason"),
    [
        ("text/html", b"{}", "not_json"),
        ("", b"{}", "not_json"),
        ("application/json", b"", "malformed_json"),
        ("application/json", b"{", "malformed_json"),
        ("application/json", b'{"a": "\xff"}', "malformed_json"),
        ("application/json", b"[" * 60_000, "malformed_json"),
        ("application/json", b"1" * 60_000, "malformed_json"),
        ("application/json", b"[]", "not_an_object"),
        ("application/json", b"null", "not_an_object"),
        ("application/json", b'"text"', "not_an_object"),
    ],
    ids=lambda part: part[:30] if isinstance(part, bytes) else part,
)
async def test_what_is_no_json_object_is_refused(media_type: str, body: bytes, reason: str) -> None:
    found, _ = await call(answer(body, media_type=media_type))
    with pytest.raises(PrivateCallFailed, match=reason):
        found.json_object()


async def test_a_problem_document_is_an_object() -> None:
    found, _ = await call(answer(b'{"code": "x"}', media_type="application/problem+json", status="409 Conflict"))
    assert (found.status, found.json_object()) == (409, {"code": "x"})


@pytest.mark.parametrize(
    ("behave", "timeout_s", "ready"),
    [
        (answer(b"{}"), PATIENCE_S, True),
        (answer(b"{}", status="503 Service Unavailable"), PATIENCE_S, False),
        (silent, TIMEOUT_S, False),
        (raw(b""), PATIENCE_S, False),
    ],
    ids=["ready", "not ready", "silent", "gone"],
)
async def test_readiness_is_what_the_component_says(behave: Behaviour, timeout_s: float, ready: bool) -> None:
    async with misbehaving_server(behave) as server, channel_to(server.url, timeout_s) as channel:
        assert await channel.is_ready() is ready
        assert server.requests[0].startswith(b"GET /readyz ")


async def test_calls_do_not_wait_for_each_other() -> None:
    async with misbehaving_server(silent) as server, channel_to(server.url, TIMEOUT_S) as channel:
        started_s = time.monotonic()
        failures = await asyncio.gather(
            *(channel.post("/", {}, request_id="r") for _ in range(10)), return_exceptions=True
        )
        assert [str(found) for found in failures] == ["deadline"] * 10
        assert time.monotonic() - started_s < TIMEOUT_S + 20
