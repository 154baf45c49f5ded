"""Problems and internal errors as responses."""

from typing import Any

import httpx2
import pytest
from support.api.edge_app import BASE_URL, code, problem

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.requests.edge import HttpEdge
from soundmark.kit.http.responses.problems import Problem, Unauthenticated


@pytest.mark.parametrize("path", ["/v1/broken", "/plainly-broken"])
async def test_an_internal_error_reveals_only_its_request_id(
    client: httpx2.AsyncClient, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = await client.get(path)
    assert (answer.status_code, code(answer)) == (500, "internal_error")
    assert "confidential" not in answer.text
    assert "LookupError" not in answer.text
    logged = "".join(capfd.readouterr())
    assert answer.headers["x-request-id"] in logged
    assert "LookupError: confidential" in logged


async def test_a_problem_carries_its_detail_and_headers(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/refused")
    assert problem(answer)["detail"] == "Not like this."
    assert answer.headers["retry-after"] == "1"


async def test_an_error_after_the_response_began_sends_no_second_response() -> None:
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


async def test_a_problem_raised_outside_every_route_is_answered() -> None:
    async def refuses(_scope: Any, _receive: Any, _send: Any) -> None:
        raise Unauthenticated

    transport = httpx2.ASGITransport(HttpEdge(refuses, BASE_URL, SystemEntropy()))  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        answer = await client.get("/v1")
    assert (answer.status_code, code(answer)) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_refusal_does_not_repeat_the_input(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/notes", json={"text": ["confidential"]})
    assert "confidential" not in answer.text


def test_a_problem_does_not_mention_http() -> None:
    """Commands raise problems; only the edge knows HTTP statuses."""
    assert str(Unauthenticated()) == "A valid credential is required."
    assert issubclass(Unauthenticated, Problem)
