"""The HTTP edge: what every answer carries, and in which order a request is judged."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx2
import pytest
import structlog
from fastapi import APIRouter, Depends, FastAPI, Query
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.asgi import Message
from soundmark.kit.http.bodies import LARGE_BODY, SMALL_BODY, BodyLimits
from soundmark.kit.http.edge import HttpEdge, install_problem_handlers
from soundmark.kit.http.problem_documents import PROBLEM_TYPE
from soundmark.kit.http.problems import Problem, Unauthenticated, ValidationFailed
from soundmark.kit.http.routes import ACCESS, StrictRoute

BASE_URL = "http://edge.test"
PUBLIC = {ACCESS: {"public": True}}
CLOSED = {ACCESS: {"public": False}}
JSON = {"content-type": "application/json"}


class Note(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: str
    inner: dict[str, int] | None = None


async def authenticate(request: Request) -> str:
    if request.headers.get("authorization") != "Bearer right":
        raise Unauthenticated
    return "somebody"


async def tenant(request: Request) -> str:
    """A dependency that reads the parsed body before its shape is judged, as tenants are."""
    if isinstance(request.state.json, dict) and request.state.json.get("stranger"):
        raise ValidationFailed("stranger")
    return "tenant"


def feature() -> APIRouter:
    router = APIRouter(route_class=StrictRoute)

    @router.get("/v1/things", openapi_extra=PUBLIC)
    async def things() -> None:
        raise NotImplementedError

    @router.delete("/v1/things", openapi_extra=PUBLIC)
    async def no_things() -> None:
        raise NotImplementedError

    @router.get("/v1/things/{name}", openapi_extra=PUBLIC)
    async def thing(name: str) -> None:
        raise NotImplementedError

    @router.post("/v1/things/all", openapi_extra=PUBLIC)
    async def all_things() -> None:
        raise NotImplementedError

    return router


class LargeRoute(StrictRoute):
    body_limits = LARGE_BODY


def large_feature() -> APIRouter:
    router = APIRouter(route_class=LargeRoute)

    @router.post("/v1/large-notes", openapi_extra=PUBLIC)
    async def write(note: Note) -> str:
        return note.text

    return router


def create_app() -> HttpEdge:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.router.route_class = StrictRoute
    app.state.authenticate = authenticate
    install_problem_handlers(app, BASE_URL)

    @app.post("/v1/notes", openapi_extra=PUBLIC)
    async def write(note: Note, _: Annotated[str, Depends(tenant)]) -> dict[str, Any]:
        return {"text": note.text}

    app.include_router(large_feature())

    @app.get("/v1/notes", openapi_extra=PUBLIC)
    async def read(limit: Annotated[int, Query(ge=1)] = 1) -> int:
        return limit

    @app.post("/v1/closed", openapi_extra=CLOSED)
    async def closed(request: Request, note: Note) -> dict[str, Any]:
        return {"caller": request.state.caller, "text": note.text}

    @app.get("/v1/cached", openapi_extra=PUBLIC)
    async def cached(response: Response) -> None:
        response.headers["Cache-Control"] = "public, max-age=60"

    @app.get("/v1/broken", openapi_extra=PUBLIC)
    async def broken() -> None:
        raise LookupError("confidential")

    @app.get("/v1/refused", openapi_extra=PUBLIC)
    async def refused() -> None:
        raise ValidationFailed("Not like this.", headers={"retry-after": "1"})

    app.include_router(feature())

    async def plainly_broken(_: Request) -> Response:
        raise LookupError("confidential")

    async def plain(_: Request) -> Response:
        return Response("plain")

    app.router.routes.append(Route("/plain", plain))
    app.router.routes.append(Route("/plain", plain, methods=["PATCH"]))
    app.router.routes.append(Route("/plainly-broken", plainly_broken))
    return HttpEdge(app, BASE_URL, SystemEntropy())


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(create_app(), raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        yield client


def problem(answer: httpx2.Response) -> dict[str, Any]:
    """The problem document, which has every member that it must have."""
    assert answer.headers["content-type"] == PROBLEM_TYPE
    document: dict[str, Any] = answer.json()
    assert document["status"] == answer.status_code
    assert document["type"] == f"{BASE_URL}/problems/{document['code']}"
    assert document["request_id"] == answer.headers["x-request-id"]
    assert set(document) - {"errors"} == {"type", "title", "status", "detail", "code", "request_id"}
    return document


def code(answer: httpx2.Response) -> str:
    return str(problem(answer)["code"])


@pytest.mark.parametrize("own", ["a", "A-Z_09", "x" * 64])
async def test_the_callers_request_id_is_kept(client: httpx2.AsyncClient, own: str) -> None:
    for path in ("/v1/notes", "/nowhere", "/v1/broken"):
        answer = await client.get(path, headers={"x-request-id": own})
        assert answer.headers.get_list("x-request-id") == [own]


@pytest.mark.parametrize("own", ["", "a b", "x" * 65, "a.b", "ä".encode(), b"a\tb", "a,b"])
async def test_a_request_id_of_another_shape_is_replaced(client: httpx2.AsyncClient, own: str | bytes) -> None:
    """It goes into the log and to private components, so it may hold nothing."""
    answer = await client.get("/v1/notes", headers=[(b"x-request-id", own.encode() if isinstance(own, str) else own)])
    assert answer.headers["x-request-id"].startswith("req_")


async def test_every_request_has_an_id_of_its_own(client: httpx2.AsyncClient) -> None:
    ids = {(await client.get("/v1/notes")).headers["x-request-id"] for _ in range(10)}
    assert len(ids) == 10


@pytest.mark.parametrize("path", ["/v1/notes", "/v1/notes?limit=0", "/v1/nowhere", "/v1/broken", "/v1/refused"])
async def test_nothing_below_v1_is_stored(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.headers.get_list("cache-control") == ["no-store"]


async def test_a_wrong_method_below_v1_is_not_stored_either(client: httpx2.AsyncClient) -> None:
    assert (await client.delete("/v1/notes")).headers["cache-control"] == "no-store"


async def test_a_route_may_say_that_it_is_cached(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/v1/cached")).headers.get_list("cache-control") == ["public, max-age=60"]


async def test_elsewhere_nothing_is_said_about_caching(client: httpx2.AsyncClient) -> None:
    assert "cache-control" not in (await client.get("/plain")).headers


@pytest.mark.parametrize("path", ["/v1/notes", "/v1/broken", "/plain", "/nowhere"])
async def test_no_browser_guesses_a_type(client: httpx2.AsyncClient, path: str) -> None:
    assert (await client.get(path)).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/nowhere", "/v1/notes/", "/V1/notes", "/v1//notes", "/v1/notes/%00"])
async def test_a_path_that_does_not_exist_is_not_found(client: httpx2.AsyncClient, path: str) -> None:
    """Also one that differs by a slash only: nothing is answered at two addresses."""
    answer = await client.get(path)
    assert (answer.status_code, code(answer)) == (404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
async def test_the_response_to_a_wrong_method_lists_every_right_one(client: httpx2.AsyncClient, method: str) -> None:
    """Also those that another route has on the same path."""
    answer = await client.request(method, "/v1/notes")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/things", "DELETE, GET, HEAD"), ("/v1/things/one", "GET, HEAD"), ("/v1/things/all", "POST")],
)
async def test_the_right_methods_are_listed_on_routes_of_features(
    client: httpx2.AsyncClient, path: str, allowed: str
) -> None:
    """Such routes stand in a router of their own. A path that is spelt out is not also one with a parameter."""
    answer = await client.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


async def test_the_right_methods_are_listed_on_plain_routes(client: httpx2.AsyncClient) -> None:
    answer = await client.delete("/plain")
    assert (answer.status_code, code(answer)) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, PATCH"


@pytest.mark.parametrize("path", ["/v1/broken", "/plainly-broken"])
async def test_a_mistake_of_ours_tells_nothing_but_its_request_id(
    client: httpx2.AsyncClient, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = await client.get(path)
    assert (answer.status_code, code(answer)) == (500, "internal_error")
    assert "confidential" not in answer.text
    assert "LookupError" not in answer.text
    logged = "".join(capfd.readouterr())
    assert answer.headers["x-request-id"] in logged
    assert "LookupError: confidential" in logged


async def test_a_problem_brings_its_detail_and_headers(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/refused")
    assert problem(answer)["detail"] == "Not like this."
    assert answer.headers["retry-after"] == "1"


async def test_a_problem_that_has_already_begun_to_be_answered_is_not_answered_twice() -> None:
    async def half(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise LookupError("confidential")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "path": "/v1", "method": "GET", "headers": []}
    with pytest.raises(LookupError):
        await HttpEdge(half, BASE_URL, SystemEntropy())(scope, None, send)  # type: ignore[arg-type]  # nothing is received
    assert [message["type"] for message in sent] == ["http.response.start"]


async def test_a_problem_raised_outside_of_every_route_is_answered() -> None:
    async def refuses(_scope: Any, _receive: Any, _send: Any) -> None:
        raise Unauthenticated

    transport = httpx2.ASGITransport(HttpEdge(refuses, BASE_URL, SystemEntropy()))  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        answer = await client.get("/v1")
    assert (answer.status_code, code(answer)) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "media_type",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json", "json"],
)
async def test_a_body_that_is_no_json_by_name_is_refused(client: httpx2.AsyncClient, media_type: str | None) -> None:
    """A form of another site can send those, and JSON only with the browser's leave."""
    headers = {} if media_type is None else {"content-type": media_type}
    answer = await client.post("/v1/notes", content=b'{"text":"a"}', headers=headers)
    assert (answer.status_code, code(answer)) == (415, "unsupported_media_type")


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
async def test_json_is_json_with_any_parameters(client: httpx2.AsyncClient, media_type: str) -> None:
    answer = await client.post("/v1/notes", content=b'{"text":"a"}', headers={"content-type": media_type})
    assert (answer.status_code, answer.json()) == (200, {"text": "a"})


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"text":"a","text":"a"}', b'{"text":NaN}', b'{"text":"\xff"}', b"\xef\xbb\xbf{}"]
)
async def test_broken_json_is_malformed(client: httpx2.AsyncClient, body: bytes) -> None:
    answer = await client.post("/v1/notes", content=body, headers=JSON)
    assert (answer.status_code, code(answer)) == (400, "malformed_json")


def padded(size: int) -> bytes:
    body = b'{"text":"a"}'
    return body + b" " * (size - len(body))


@pytest.mark.parametrize(("path", "limits"), [("/v1/notes", SMALL_BODY), ("/v1/large-notes", LARGE_BODY)])
async def test_a_body_may_be_as_large_as_its_route_allows(
    client: httpx2.AsyncClient, path: str, limits: BodyLimits
) -> None:
    """64 KiB, and a mebibyte where the route says so."""
    largest = padded(limits.bytes_max)
    assert (await client.post(path, content=largest, headers=JSON)).status_code == 200
    answer = await client.post(path, content=largest + b" ", headers=JSON)
    assert (answer.status_code, code(answer)) == (413, "payload_too_large")


def test_the_limits_are_those_of_the_contract() -> None:
    assert (SMALL_BODY.bytes_max, LARGE_BODY.bytes_max) == (64 * 1024, 1024 * 1024)


async def test_a_large_body_that_is_no_json_either_is_too_large(client: httpx2.AsyncClient) -> None:
    """Its size is judged before anything of it is parsed."""
    answer = await client.post("/v1/notes", content=b"{" * (SMALL_BODY.bytes_max + 1), headers=JSON)
    assert (answer.status_code, code(answer)) == (413, "payload_too_large")


@pytest.mark.parametrize("declared", [str(SMALL_BODY.bytes_max + 1), "9" * 5000])
async def test_a_body_that_says_it_is_larger_is_refused_unread(client: httpx2.AsyncClient, declared: str) -> None:
    async def never() -> AsyncIterator[bytes]:
        pytest.fail("the body was read")
        yield b""

    headers = {**JSON, "content-length": declared}
    answer = await client.post("/v1/notes", content=never(), headers=headers)
    assert (answer.status_code, code(answer)) == (413, "payload_too_large")


@pytest.mark.parametrize("declared", [None, "1", "-1", "none", "１"])
async def test_a_larger_body_is_refused_whatever_it_says(client: httpx2.AsyncClient, declared: str | None) -> None:
    """Without a length, or with a wrong one, the bytes are counted."""
    transport = client._transport
    assert isinstance(transport, httpx2.ASGITransport)
    headers = [(b"content-type", b"application/json")]
    if declared is not None:
        headers.append((b"content-length", declared.encode()))
    chunk = padded(SMALL_BODY.bytes_max)
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
    """Else anybody could fill the log with tracebacks and raise the alarm that an `internal_error` is."""
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


async def test_a_stranger_learns_nothing_about_their_body(client: httpx2.AsyncClient) -> None:
    """Credential first: whoever has none learns nothing about sizes, types and shapes."""
    for headers, body in (({}, b""), (JSON, b"{"), (JSON, padded(SMALL_BODY.bytes_max + 1)), (JSON, b"{}")):
        answer = await client.post("/v1/closed", content=body, headers=headers)
        assert (answer.status_code, code(answer)) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_known_caller_reaches_the_route(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/closed", json={"text": "a"}, headers={"authorization": "Bearer right"})
    assert answer.json() == {"caller": "somebody", "text": "a"}


async def test_the_tenant_is_judged_before_the_shape(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/notes", json={"stranger": True, "unknown": 1})
    assert problem(answer)["detail"] == "stranger"


async def test_every_refused_member_is_named(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/notes", json={"inner": {"a/b~c": "x"}, "more": 1})
    found = problem(answer)
    assert (answer.status_code, found["code"]) == (422, "validation_failed")
    assert {(error["location"], error["pointer"]) for error in found["errors"]} == {
        ("body", "/text"),
        ("body", "/inner/a~1b~0c"),
        ("body", "/more"),
    }


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"1", b"true"])
async def test_a_body_that_is_no_object_is_refused_as_a_whole(client: httpx2.AsyncClient, body: bytes) -> None:
    answer = await client.post("/v1/notes", content=body, headers=JSON)
    found = problem(answer)
    assert (answer.status_code, found["code"]) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in found["errors"]] == [("body", "")]


async def test_twenty_faults_are_named_and_no_more(client: httpx2.AsyncClient) -> None:
    unknown = {f"unknown{number}": 1 for number in range(60)}
    errors = problem(await client.post("/v1/notes", json={"text": "a", **unknown}))["errors"]
    assert [error["pointer"] for error in errors] == [f"/unknown{number}" for number in range(20)]


async def test_a_name_as_long_as_a_body_is_not_repeated(client: httpx2.AsyncClient) -> None:
    """The pointer ends in front of it."""
    answer = await client.post("/v1/notes", json={"text": "a", "inner": {"b": 1, "\0" * 5000: "x"}})
    assert [error["pointer"] for error in problem(answer)["errors"]] == ["/inner"]
    assert len(answer.content) < 1000


async def test_a_refused_parameter_is_named(client: httpx2.AsyncClient) -> None:
    errors = problem(await client.get("/v1/notes", params={"limit": "x"}))["errors"]
    assert [(error["location"], error["pointer"]) for error in errors] == [("query", "/limit")]


@pytest.mark.parametrize(
    ("query", "pointers"),
    [
        ("limt=1", ["/limt"]),
        ("limit=1&Limit=1", ["/Limit"]),
        ("limit=1&limit=1", ["/limit"]),
        ("limit=1&limit=2&a=1&b", ["/limit", "/a", "/b"]),
        ("limit%20=1", ["/limit "]),
        ("=1", ["/"]),
        ("a" * 1000 + "=1", ["/" + "a" * 160]),
        ("limit[]=1;x", ["/limit[]"]),
        ("&".join(f"x{number}" for number in range(30)), [f"/x{number}" for number in range(20)]),
        ("&".join(f"x{number}" for number in range(10_000)), ["/"]),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_query_string_holds_nothing_but_known_parameters_once(
    client: httpx2.AsyncClient, query: str, pointers: list[str]
) -> None:
    answer = await client.get(f"/v1/notes?{query}")
    found = problem(answer)
    assert (answer.status_code, found["code"]) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in found["errors"]] == [("query", at) for at in pointers]


@pytest.mark.parametrize("query", ["", "?", "?limit=1", "?&&", "?limit=1&"])
async def test_a_query_string_without_unknown_parameters_is_read(client: httpx2.AsyncClient, query: str) -> None:
    assert (await client.get(f"/v1/notes{query}")).json() == 1


@pytest.mark.parametrize("path", ["/v1/notes", "/v1/cached", "/plain", "/v1/broken", "/v1/refused", "/nowhere"])
async def test_head_is_answered_as_get_without_the_body(client: httpx2.AsyncClient, path: str) -> None:
    request_id = {"x-request-id": "one-for-both"}
    got, head = await client.get(path, headers=request_id), await client.head(path, headers=request_id)
    assert (head.status_code, head.headers, head.content) == (got.status_code, got.headers, b"")
    assert int(head.headers["content-length"]) == len(got.content)


async def test_head_is_answered_nowhere_else(client: httpx2.AsyncClient) -> None:
    answer = await client.head("/v1/closed")
    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "POST", b"")


async def test_the_log_tells_head_from_get(client: httpx2.AsyncClient) -> None:
    with structlog.testing.capture_logs() as logged:
        await client.head("/v1/notes")
    assert [(entry["method"], entry["route"], entry["status"]) for entry in logged] == [("HEAD", "/v1/notes", 200)]


async def test_a_refusal_does_not_repeat_what_was_sent(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/notes", json={"text": ["confidential"]})
    assert "confidential" not in answer.text


def test_a_problem_says_nothing_of_http() -> None:
    """Commands raise problems; only the edge knows what a status is."""
    assert str(Unauthenticated()) == "A valid credential is required."
    assert issubclass(Unauthenticated, Problem)


@pytest.mark.parametrize(("more", "status"), [({}, 200), ({"unknown": []}, 422)])
async def test_the_scope_holds_nothing_of_a_body_that_was_answered(more: dict[str, Any], status: int) -> None:
    """The server keeps the scope while the connection is open: each could hold megabytes while it rests."""
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
