"""The members and parameters that a validation error names, and how many it names."""

import httpx2
import pytest
from support.api.edge_app import JSON, problem


async def test_every_invalid_member_is_named(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/notes", json={"inner": {"a/b~c": "x"}, "more": 1})
    found = problem(answer)
    assert (answer.status_code, found["code"]) == (422, "validation_failed")
    assert {(error["location"], error["pointer"]) for error in found["errors"]} == {
        ("body", "/text"),
        ("body", "/inner/a~1b~0c"),
        ("body", "/more"),
    }


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"1", b"true"])
async def test_a_body_that_is_not_an_object_is_refused_as_a_whole(client: httpx2.AsyncClient, body: bytes) -> None:
    answer = await client.post("/v1/notes", content=body, headers=JSON)
    found = problem(answer)
    assert (answer.status_code, found["code"]) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in found["errors"]] == [("body", "")]


async def test_at_most_twenty_faults_are_named(client: httpx2.AsyncClient) -> None:
    unknown = {f"unknown{number}": 1 for number in range(60)}
    errors = problem(await client.post("/v1/notes", json={"text": "a", **unknown}))["errors"]
    assert [error["pointer"] for error in errors] == [f"/unknown{number}" for number in range(20)]


async def test_a_name_as_long_as_a_body_is_not_repeated(client: httpx2.AsyncClient) -> None:
    """The pointer ends just above it."""
    answer = await client.post("/v1/notes", json={"text": "a", "inner": {"b": 1, "\0" * 5000: "x"}})
    assert [error["pointer"] for error in problem(answer)["errors"]] == ["/inner"]
    assert len(answer.content) < 1000


async def test_an_invalid_parameter_is_named(client: httpx2.AsyncClient) -> None:
    errors = problem(await client.get("/v1/notes", params={"limit": "x"}))["errors"]
    assert [(error["location"], error["pointer"]) for error in errors] == [("query", "/limit")]


async def test_a_query_string_holds_only_known_parameters_and_each_only_once(
    client: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    for query, pointers in [
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
    ]:
        with subtests.test(query=query, pointers=pointers):
            answer = await client.get(f"/v1/notes?{query}")
            found = problem(answer)
            assert (answer.status_code, found["code"]) == (422, "validation_failed")
            assert [(error["location"], error["pointer"]) for error in found["errors"]] == [
                ("query", at) for at in pointers
            ]


@pytest.mark.parametrize("query", ["", "?", "?limit=1", "?&&", "?limit=1&"])
async def test_a_query_string_without_unknown_parameters_is_read(client: httpx2.AsyncClient, query: str) -> None:
    assert (await client.get(f"/v1/notes{query}")).json() == 1
