"""Routes that resolve everything but the body by themselves: `kit.http.requests.lean_route`."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import Depends, FastAPI, Header, Query
from pydantic import BaseModel
from starlette.requests import Request

from soundmark.kit.http.requests.lean_route import FromRequest, LeanRoute


def read_agent(request: Request) -> str:
    reads.append(request.url.path)
    return request.headers["user-agent"]


reads: list[str] = []
Agent = Annotated[str, FromRequest(read_agent)]
Number = Annotated[int | None, Query(ge=1, alias="number-of")]


class Body(BaseModel):
    word: str


async def read_more(limit: Annotated[int, Query(le=9)] = 5, x_more: Annotated[str | None, Header()] = None) -> Any:
    return {"limit": limit, "more": x_more}


async def look(agent: Agent, request: Request, more: Annotated[Any, Depends(read_more)], number: Number = None) -> Any:
    """Return what the endpoint was called with."""
    return {"agent": agent, "path": request.url.path, "number": number, **more}


async def write(agent: Agent, body: Body, must: int) -> Any:
    return {"agent": agent, "word": body.word, "must": must}


@pytest.fixture
def app() -> FastAPI:
    """An app with a route to read from and one to write to."""
    app = FastAPI()
    app.router.routes += [
        LeanRoute("/looks", look, methods=["GET"]),
        LeanRoute("/looks/{name}", write, methods=["POST"]),
    ]
    reads.clear()
    return app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of that app."""
    transport = httpx2.ASGITransport(app)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
    headers = {"user-agent": "tester"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
        yield client


async def test_what_is_absent_has_the_default_and_what_is_given_is_judged(client: httpx2.AsyncClient) -> None:
    looked = {"agent": "tester", "path": "/looks", "number": None, "limit": 5, "more": None}
    assert (await client.get("/looks")).json() == looked
    given = await client.get("/looks?limit=7&number-of=3", headers={"X-More": "yes"})
    assert given.json() == {**looked, "number": 3, "limit": 7, "more": "yes"}
    refused = await client.get("/looks?number-of=0&limit=10")
    assert [error["loc"] for error in refused.json()["detail"]] == [["query", "limit"], ["query", "number-of"]]


async def test_nothing_is_read_for_a_request_that_is_refused(client: httpx2.AsyncClient) -> None:
    refused = await client.post("/looks/one", json={"word": 1})
    assert [error["loc"] for error in refused.json()["detail"]] == [["query", "must"], ["body", "word"]]
    assert reads == []
    assert (await client.post("/looks/one?must=2", json={"word": "w"})).json() == {
        "agent": "tester",
        "word": "w",
        "must": 2,
    }


async def test_a_path_that_begins_otherwise_is_not_matched(client: httpx2.AsyncClient) -> None:
    paths = ("/look", "/looks/a/b", "/Looks")
    assert [(await client.get(path)).status_code for path in paths] == [404, 404, 404]
    assert (await client.get("/looks/one")).status_code == 405


def test_the_published_document_holds_every_parameter_but_those(app: FastAPI) -> None:
    published = app.openapi()["paths"]
    names = [parameter["name"] for parameter in published["/looks"]["get"]["parameters"]]
    assert names == ["number-of", "limit", "x-more"]
    assert published["/looks"]["get"]["description"] == look.__doc__
