"""Paths and methods: unknown paths, allowed methods, and HEAD."""

import httpx2
import pytest
import structlog
from support.api.edge_app import code


@pytest.mark.parametrize("path", ["/", "/nowhere", "/v1/notes/", "/V1/notes", "/v1//notes", "/v1/notes/%00"])
async def test_a_path_that_does_not_exist_is_not_found(client: httpx2.AsyncClient, path: str) -> None:
    """Also a path that differs only by a slash: nothing is served at two addresses."""
    answer = await client.get(path)
    assert (answer.status_code, code(answer)) == (404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
async def test_the_response_to_a_wrong_method_lists_every_allowed_one(client: httpx2.AsyncClient, method: str) -> None:
    """Also the methods of another route on the same path."""
    answer = await client.request(method, "/v1/notes")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/things", "DELETE, GET, HEAD"), ("/v1/things/one", "GET, HEAD"), ("/v1/things/all", "POST")],
)
async def test_the_allowed_methods_are_listed_on_routes_of_features(
    client: httpx2.AsyncClient, path: str, allowed: str
) -> None:
    """These routes are in their own router. A literal path does not also count as one with a parameter."""
    answer = await client.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


async def test_the_allowed_methods_are_listed_on_plain_routes(client: httpx2.AsyncClient) -> None:
    answer = await client.delete("/plain")
    assert (answer.status_code, code(answer)) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, PATCH"


@pytest.mark.parametrize("path", ["/v1/notes", "/v1/cached", "/plain", "/v1/broken", "/v1/refused", "/nowhere"])
async def test_head_is_answered_as_get_without_the_body(client: httpx2.AsyncClient, path: str) -> None:
    request_id = {"x-request-id": "one-for-both"}
    got, head = await client.get(path, headers=request_id), await client.head(path, headers=request_id)
    assert (head.status_code, head.headers, head.content) == (got.status_code, got.headers, b"")
    assert int(head.headers["content-length"]) == len(got.content)


async def test_head_is_answered_nowhere_else(client: httpx2.AsyncClient) -> None:
    answer = await client.head("/v1/closed")
    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "POST", b"")


async def test_the_log_distinguishes_head_from_get(client: httpx2.AsyncClient) -> None:
    with structlog.testing.capture_logs() as logged:
        await client.head("/v1/notes")
    assert [(entry["method"], entry["route"], entry["status"]) for entry in logged] == [("HEAD", "/v1/notes", 200)]
