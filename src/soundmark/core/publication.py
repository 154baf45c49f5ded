"""What anybody may read: the contract, the human documents, and what each problem means."""

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from soundmark.core.contract.catalogue import CATALOGUE
from soundmark.core.contract.openapi import build_openapi
from soundmark.core.contract.schemas import published_schemas
from soundmark.core.docs import render_problem, render_reference
from soundmark.kit.problems import NotFound

_CACHED = {"cache-control": "public, max-age=300"}
_PAGE = {**_CACHED, "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:"}


def publication_routes(app: FastAPI, base_url: str) -> list[Route]:
    """The routes of everything that is published, rendered once."""
    openapi_text, schema_texts = openapi_document(app, base_url), schema_documents(base_url)
    reference = render_reference(json.loads(openapi_text))

    async def read_openapi(_: Request) -> Response:
        return Response(openapi_text, media_type="application/json", headers=_CACHED)

    async def read_schema(request: Request) -> Response:
        text = schema_texts.get(request.path_params["name"].removesuffix(".json"))
        if text is None:
            raise NotFound
        return Response(text, media_type="application/schema+json", headers=_CACHED)

    async def read_docs(_: Request) -> Response:
        return HTMLResponse(reference, headers=_PAGE)

    async def read_problem(request: Request) -> Response:
        problem = CATALOGUE.get(request.path_params["code"])
        if problem is None:
            raise NotFound
        status = int(problem.kind)
        page = render_problem(problem.code, problem.title, status, problem.__doc__ or problem.title)
        return HTMLResponse(page, headers=_PAGE)

    async def go_to_docs(_: Request) -> Response:
        return RedirectResponse("/docs", HTTPStatus.TEMPORARY_REDIRECT)

    return [
        Route("/", go_to_docs),
        Route("/openapi.json", read_openapi),
        Route("/schemas/{name}", read_schema),
        Route("/docs", read_docs),
        Route("/problems/{code}", read_problem),
    ]


def openapi_document(app: FastAPI, base_url: str) -> str:
    """The text of `/openapi.json` for the routes of `app`."""
    return _text(build_openapi(app, base_url))


def schema_documents(base_url: str) -> dict[str, str]:
    """The text of each `/schemas/<name>.json`, by its name."""
    return {name: _text(schema) for name, schema in published_schemas(base_url).items()}


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
