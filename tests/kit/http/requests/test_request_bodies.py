"""The body of a request: its media type, its size and its syntax, and the order of these checks."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import structlog
from support.api.edge_app import JSON, code, create_app, pad_body, problem

from soundmark.kit.http.asgi import Message
from soundmark.kit.http.requests.bodies import LARGE_BODY, SMALL_BODY, BodyLimits


@pytest.mark.parametrize(
    "media_type",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json", "json"],
)
async def test_a_body_of_another_media_type_is_refused(client: httpx2.AsyncClient, media_type: str | None) -> None:
    """A form on another site can send the other types, but JSON only after the browser's preflight."""
    headers = {} if media_type is None else {"content-type": media_type}
    answer = await client.post("/v1/notes", content=b'{"text":"a"}', headers=headers)
    assert (answer.status_code, code(answer)) == (415, "unsupported_media_type")


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
async def test_the_media_type_may_have_any_parameters(client: httpx2.AsyncClient, media_type: str) -> None:
    answer = await client.post("/v1/notes", content=b'{"text":"a"}', headers={"content-type": media_type})
    assert (answer.status_code, answer.json()) == (200, {"text": "a"})


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"text":"a","text":"a"}', b'{"text":NaN}', b'{"text":"\xff"}', b"\xef\xbb\xbf{}"]
)
async def test_broken_json_is_malformed(client: httpx2.AsyncClient, body: bytes) -> None:
    answer = await client.post("/v1/notes", content=body, headers=JSON)
    assert (answer.status_code, code(answer)) == (400, "malformed_json")


@pytest.mark.parametrize(("path", "limits"), [("/v1/notes", SMALL_BODY), ("/v1/large-notes", LARGE_BODY)])
async def test_a_body_may_be_as_large_as_its_route_allows(
    client: httpx2.AsyncClient, path: str, limits: BodyLimits
) -> None:
    """64 KiB, or 1 MiB where the route allows it."""
    largest = pad_body(limits.bytes_max)
    assert (await client.post(path, content=largest, headers=JSON)).status_code == 200
    answer = await client.post(path, content=largest + b" ", headers=JSON)
    assert (answer.status_code, code(answer)) == (413, "payload_too_large")


def test_the_limits_are_those_of_the_contract() -> None:
    assert (SMALL_BODY.bytes_max, LARGE_BODY.bytes_max) == (64 * 1024, 1024 * 1024)


async def test_a_large_body_that_is_also_malformed_is_too_large(client: httpx2.AsyncClient) -> None:
    """The size is checked before anything is parsed."""
    answer = await client.post("/v1/notes", content=b"{" * (SMALL_BODY.bytes_max + 1), headers=JSON)
    assert (answer.status_code, code(answer)) == (413, "payload_too_large")


@pytest.mark.parametrize("declared", [str(SMALL_BODY.bytes_max + 1), "9" * 5000])
async def test_a_body_with_too_large_a_content_length_is_refused_unread(
    client: httpx2.AsyncClient, declared: str
) -> None:
    async def never() -> AsyncIterator[bytes]:
        pytest.fail("the body was read")
        yield b""

    headers = {**JSON, "content-length": declared}
    answer = await client.post("/v1/notes", content=never(), headers=headers)
    assert (answer.status_code, code(answer)) == (413, "payload_too_large")


@pytest.mark.parametrize("declared", [None, "1", "-1", "none", "１"])
async def test_a_body_that_is_too_large_is_refused_whatever_its_content_length(
    client: httpx2.AsyncClient, declared: str | None
) -> None:
    """Without a length, or with a wrong one, the bytes are counted."""
    transport = client._transport
    assert isinstance(transport, httpx2.ASGITransport)
    headers = [(b"content-type", b"application/json")]
    if declared is not None:
        headers.append((b"content-length", declared.encode()))
    chunk = pad_body(SMALL_BODY.bytes_max)
    messages = iter([(chunk, True), (b" ", True), (b" " * 1000, False)])

    async def receive() -> dict[str, Any]:
        body, more = next(messages)
        return {"type": "http.request", "body": body, "more_body": more}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/v1/notes", "method": "POST", "headers": headers, "query_string": b""}
    await transport.app(scope, receive, send)  # type: ignore[arg-type]  # the protocol's loose dicts
    assert sent[0]["status"] == 413
    assert json.loads(sent[1]["body"])["code"] == "payload_too_large"
    assert len(list(messages)) == 1, "what comes after is not read"


async def test_a_caller_that_leaves_while_sending_is_not_our_error() -> None:
    """Otherwise anybody could fill the log with tracebacks and trigger the alert on `internal_error`."""
    messages = iter(
        [{"type": "http.request", "body": b'{"text"', "more_body": True}, {"type": "http.disconnect"}],
    )

    async def receive() -> Message:
        return next(messages)

    answered: list[Message] = []

    async def send(message: Message) -> None:
        answered.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/notes",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    with structlog.testing.capture_logs() as logged:
        await create_app()(scope, receive, send)
    assert [entry["event"] for entry in logged] == ["request"]
    assert answered[0]["status"] == 499


async def test_a_caller_without_a_credential_learns_nothing_about_the_body(client: httpx2.AsyncClient) -> None:
    """The credential is checked first: without one, a caller learns nothing about sizes, types and shapes."""
    for headers, body in (({}, b""), (JSON, b"{"), (JSON, pad_body(SMALL_BODY.bytes_max + 1)), (JSON, b"{}")):
        answer = await client.post("/v1/closed", content=body, headers=headers)
        assert (answer.status_code, code(answer)) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_known_caller_reaches_the_route(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/closed", json={"text": "a"}, headers={"authorization": "Bearer right"})
    assert answer.json() == {"caller": "somebody", "text": "a"}


async def test_the_tenant_is_checked_before_the_shape(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/notes", json={"stranger": True, "unknown": 1})
    assert problem(answer)["detail"] == "stranger"


@pytest.mark.parametrize(("more", "status"), [({}, 200), ({"unknown": []}, 422)])
async def test_the_scope_keeps_nothing_of_a_body_after_the_response(more: dict[str, Any], status: int) -> None:
    """The server keeps the scope while the connection is open, and an idle one could hold megabytes."""
    body = json.dumps({"text": "answered", "inner": {}, **more}).encode()
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/notes",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    answered: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        answered.append(message)

    await create_app()(scope, receive, send)
    assert answered[0]["status"] == status
    assert set(scope["state"]) <= {"request_id", "caller"}
