"""What operations are called with: as the framework would resolve it (`kit.http.requests.lean_route`)."""

import inspect
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import solve_dependencies
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request

from soundmark.core.app import bare_app
from soundmark.core.edge.operations import OperationRoute
from soundmark.kit.http.requests.lean_route import ArgumentResolver
from soundmark.kit.http.responses.problems import Problem

ROUTES: Final = [route for route in bare_app().routes if isinstance(route, OperationRoute)]
# Each is valid for some parameters and invalid for others.
TEXTS: Final = (
    "",
    "1",
    "0",
    "007",
    "1.0",
    "true",
    "intent",
    "asc",
    "2026-11-20T10:00:00Z",
    "org_" + "a" * 22,
    "x" * 161,
)


async def pass_everybody(**_: Any) -> None:
    """Stand in for the authorisation, whose parameters are judged all the same."""


def make_request(dependant: Dependant, text: str | None) -> Request:
    """Return a request with this text for each parameter; None leaves all out but those of the path."""
    described = [dependant, *dependant.dependencies]
    path = {field.alias: text or "p" for each in described for field in each.path_params}
    query = {field.alias: text for each in described for field in each.query_params if text is not None}
    headers = [
        (field.alias.lower().encode(), text.encode())
        for each in described
        for field in each.header_params
        if text is not None
    ]
    scope = {"type": "http", "method": "GET", "path": "/", "path_params": path, "headers": headers}
    return Request({**scope, "query_string": urlencode(query).encode()})


def compared(errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return errors without the exceptions in them, of which no two are equal."""
    return [{name: value for name, value in error.items() if name != "ctx"} for error in errors]


async def solved_by_framework(dependant: Dependant, request: Request) -> Any:
    async with AsyncExitStack() as stack:
        request.scope |= {"fastapi_inner_astack": stack, "fastapi_function_astack": stack}
        try:
            solved = await solve_dependencies(
                request=request, dependant=dependant, async_exit_stack=stack, embed_body_fields=False
            )
        except (RequestValidationError, Problem) as error:
            return type(error), str(error)
        solved.values.pop(dependant.response_param_name, None)
        return compared(solved.errors) or solved.values


async def resolved(dependant: Dependant, request: Request) -> Any:
    try:
        values, errors = await ArgumentResolver(dependant).resolve(request)
    except (RequestValidationError, Problem) as error:
        return type(error), str(error)
    assert dependant.call is not None
    signature = inspect.signature(dependant.call)
    fields = (*dependant.query_params, *dependant.header_params)
    defaults = {field.name: signature.parameters[field.name].default for field in fields}
    return compared(errors) or {**defaults, **values}


@pytest.mark.parametrize("text", [None, *TEXTS])
async def test_the_framework_would_resolve_the_same(text: str | None) -> None:
    wrong = {}
    for route in ROUTES:
        whole = route.dependant
        is_judged = route.operation.action is not None
        authorisation = [replace(whole.dependencies[0], call=pass_everybody)] if is_judged else []
        dependant = replace(whole, body_params=[], dependencies=[*authorisation, *whole.dependencies[is_judged:]])
        request = make_request(dependant, text)
        request.scope["route"], request.state.json = route, {}
        expected, found = await solved_by_framework(dependant, request), await resolved(dependant, request)
        if expected != found:
            wrong[route.name] = (expected, found)
    assert wrong == {}
