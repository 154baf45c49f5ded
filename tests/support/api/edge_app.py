"""A small application behind the HTTP edge, for the tests of the edge itself."""

from typing import Annotated, Any

import httpx2
from fastapi import APIRouter, Depends, FastAPI, Query
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.requests.bodies import LARGE_BODY
from soundmark.kit.http.requests.edge import HttpEdge, install_problem_handlers
from soundmark.kit.http.requests.routes import ACCESS, StrictRoute, install_validation_handler
from soundmark.kit.http.responses.problem_documents import PROBLEM_TYPE
from soundmark.kit.http.responses.problems import Unauthenticated, ValidationFailed

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
    """Read the parsed body before its shape is validated, as the tenant dependencies do."""
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
    install_validation_handler(app, BASE_URL)

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


def problem(answer: httpx2.Response) -> dict[str, Any]:
    """Return the problem document after checking that it has every required member."""
    assert answer.headers["content-type"] == PROBLEM_TYPE
    document: dict[str, Any] = answer.json()
    assert document["status"] == answer.status_code
    assert document["type"] == f"{BASE_URL}/problems/{document['code']}"
    assert document["request_id"] == answer.headers["x-request-id"]
    assert set(document) - {"errors"} == {"type", "title", "status", "detail", "code", "request_id"}
    return document


def code(answer: httpx2.Response) -> str:
    return str(problem(answer)["code"])


def pad_body(size: int) -> bytes:
    body = b'{"text":"a"}'
    return body + b" " * (size - len(body))
