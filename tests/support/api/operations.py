"""Every operation of the public API, including those that the published document leaves out."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from soundmark.core.app import bare_app
from soundmark.core.published.openapi import build_openapi
from soundmark.kit.http.requests.routes import ACCESS


@dataclass(frozen=True)
class Operation:
    """One method on one path, and the access that it declares."""

    id: str
    method: str
    path: str
    access: Mapping[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@functools.cache
def list_operations() -> tuple[Operation, ...]:
    """Return every operation, in the order of their paths."""
    app = _app()
    document = build_openapi(app, "http://core.test")
    found = {
        **{
            (path, method.upper()): Operation(operation["operationId"], method.upper(), path, operation[ACCESS])
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        },
        **{(operation.path, operation.method): operation for operation in _routed(app)},
    }
    return tuple(found[place] for place in sorted(found))


def list_routes() -> list[APIRoute]:
    """Return each route that FastAPI serves, with its response model; the hot operations are not among them."""
    return [route for route in _app().routes if isinstance(route, APIRoute)]


@functools.cache
def _app() -> FastAPI:
    return bare_app()


def _routed(app: FastAPI) -> Iterator[Operation]:
    for route in iter_route_contexts(app.routes):
        for method in route.methods or ():
            yield Operation(str(route.name), method, str(route.path_format), (route.openapi_extra or {})[ACCESS])
