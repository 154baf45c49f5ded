"""The routes of public documents: the contract, the API reference, and the page of each problem."""

import json
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from soundmark.core.published.catalogue import CATALOGUE
from soundmark.core.published.openapi import build_openapi
from soundmark.core.published.schemas import build_schemas
from soundmark.kit.http.responses.document import Document, DocumentSet

_CACHED: Final = {"cache-control": "public, max-age=300"}
_PAGE: Final = {
    **_CACHED,
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


def publication_routes(app: FastAPI, base_url: str) -> list[Route]:
    """Return the routes of all published documents."""
    contract = DocumentSet(partial(_render_contract, app, base_url))
    schemas = DocumentSet(partial(_render_schemas, base_url))
    problems = DocumentSet(_render_problems)

    async def read_openapi(request: Request) -> Response:
        return (await contract.get("openapi")).answer(request)

    async def read_schema(request: Request) -> Response:
        return (await schemas.get(request.path_params["name"].removesuffix(".json"))).answer(request)

    async def read_docs(request: Request) -> Response:
        return (await contract.get("reference")).answer(request)

    async def read_problem(request: Request) -> Response:
        return (await problems.get(request.path_params["code"])).answer(request)

    async def go_to_docs(_: Request) -> Response:
        return RedirectResponse("/docs", HTTPStatus.TEMPORARY_REDIRECT)

    return [
        Route("/", go_to_docs),
        Route("/openapi.json", read_openapi),
        Route("/schemas/{name}", read_schema),
        Route("/docs", read_docs),
        Route("/problems/{code}", read_problem),
    ]


# The templates' engine is imported when somebody asks for a page, so that Core starts without it.
def _render_contract(app: FastAPI, base_url: str) -> dict[str, Document]:
    from soundmark.core.published.reference import render_reference  # noqa: PLC0415 - see above

    text = openapi_document(app, base_url)
    return {
        "openapi": Document(text, "application/json", _CACHED),
        "reference": _page(render_reference(json.loads(text))),
    }


def _render_schemas(base_url: str) -> dict[str, Document]:
    return {
        name: Document(text, "application/schema+json", _CACHED) for name, text in schema_documents(base_url).items()
    }


def _render_problems() -> dict[str, Document]:
    from soundmark.core.published.reference import render_problem  # noqa: PLC0415 - see above

    return {
        code: _page(render_problem(code, problem.title, int(problem.kind), problem.__doc__ or problem.title))
        for code, problem in CATALOGUE.items()
    }


def _page(html: str) -> Document:
    return Document(html, "text/html; charset=utf-8", _PAGE)


def openapi_document(app: FastAPI, base_url: str) -> str:
    """Return the text of `/openapi.json` for the routes of `app`."""
    return _text(build_openapi(app, base_url))


def schema_documents(base_url: str) -> dict[str, str]:
    """Return the text of each `/schemas/<name>.json`, by name."""
    return {name: _text(schema) for name, schema in build_schemas(base_url).items()}


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
