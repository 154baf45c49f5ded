"""Routes that resolve parameters and dependencies with few steps: the framework's solver takes 10 to 40 µs for each."""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Final

from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from soundmark.kit.http.asgi import Scope

_RESOLVED: Final = "soundmark.resolved"  # Where the scope holds what the endpoint is called with.


@dataclass(frozen=True, slots=True)
class FromRequest:
    """Marks a parameter of an endpoint (in `Annotated`) that `read` finds in the request, without failing.

    It is not published, and read after everything else was judged.
    """

    read: Callable[[Request], Any]


class LeanRoute(APIRoute):
    """A route that fills the parameters marked `FromRequest`, and resolves everything but the body, by itself.

    The framework publishes all parameters and judges the body. As in the framework, dependencies come first, and their
    errors before those of the endpoint's parameters. A parameter is one text, and its default is in the signature. The
    route must not be included in another router, which would look at the whole endpoint again.
    """

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Any]], **options: Any) -> None:
        self._fixed_part: Final = path.partition("{")[0]
        super().__init__(path, _filling(endpoint), **options)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        # The router asks each route in turn, and most differ from the request before their first parameter.
        if not scope["path"].startswith(self._fixed_part):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        whole = self.dependant
        resolve = ArgumentResolver(whole).resolve
        self.dependant = replace(whole, path_params=[], query_params=[], header_params=[], dependencies=[])
        judge_body = super().get_route_handler()
        self.dependant = whole

        async def handle(request: Request) -> Response:
            values, errors = await resolve(request)
            request.scope[_RESOLVED] = None if errors else values
            try:
                return await judge_body(request)
            except RequestValidationError as error:
                if not errors:
                    raise
                raise RequestValidationError([*errors, *error.errors()]) from None
            finally:
                del request.scope[_RESOLVED]

        return handle


class ArgumentResolver:
    """What a function takes from a request, as the framework describes it."""

    def __init__(self, dependant: Dependant) -> None:
        assert dependant.call is not None, "the framework describes functions"
        assert not dependant.cookie_params, "no operation reads cookies"
        self.name: Final = dependant.name
        self.call: Final = dependant.call
        self._request_name: Final = dependant.request_param_name
        self._dependencies: Final = [ArgumentResolver(each) for each in dependant.dependencies]
        self._paths: Final = [_Parameter(field, "path") for field in dependant.path_params]
        self._queries: Final = [_Parameter(field, "query") for field in dependant.query_params]
        self._headers: Final = [_Parameter(field, "header") for field in dependant.header_params]

    async def resolve(self, request: Request) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the arguments of the function without those that have their defaults, and the errors."""
        values: dict[str, Any] = {}
        errors: list[dict[str, Any]] = []
        for each in self._dependencies:
            arguments, faults = await each.resolve(request)
            if faults:
                errors += faults
                continue
            result = await each.call(**arguments)
            if each.name is not None:
                values[each.name] = result
        for parameters, texts in (
            (self._paths, request.path_params),
            (self._queries, request.query_params),
            (self._headers, request.headers),
        ):
            for parameter in parameters:
                errors += parameter.judge(texts.get(parameter.alias), values)
        if self._request_name is not None:
            values[self._request_name] = request
        return values, errors


class _Parameter:
    """A parameter of a path, query or header."""

    def __init__(self, field: ModelField, place: str) -> None:
        self.alias: Final = field.alias
        self._field: Final = field
        self._is_required: Final = field.field_info.is_required()
        self._loc: Final = (place, field.alias)

    def judge(self, text: str | None, values: dict[str, Any]) -> list[dict[str, Any]]:
        """Add the value to `values` if there is a valid one; return the errors."""
        if text is None:
            missing = {"type": "missing", "loc": self._loc, "msg": "Field required", "input": None}
            return [missing] if self._is_required else []
        value, errors = self._field.validate(text, loc=self._loc)
        if not errors:
            values[self._field.name] = value
        return errors


def _filling(endpoint: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return `endpoint` as the framework shall see it: with the request instead of what is read from it."""
    signature = inspect.signature(endpoint)
    readers: dict[str, Callable[[Request], Any]] = {}
    left: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        marks = [mark for mark in getattr(parameter.annotation, "__metadata__", ()) if isinstance(mark, FromRequest)]
        if marks:
            readers[name] = marks[0].read
        elif parameter.annotation is Request:
            readers[name] = _itself
        else:
            left.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(endpoint)
    async def filled(*, request: Request, **body: Any) -> Any:
        resolved: dict[str, Any] | None = request.scope[_RESOLVED]
        if resolved is None:
            raise RequestValidationError([])  # The body is valid, the rest is not: the route knows why.
        values = {**resolved, **body}
        del values["request"]
        for name, read in readers.items():
            values[name] = read(request)
        return await endpoint(**values)

    left.append(inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request))
    filled.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # as `inspect` documents
    return filled


def _itself(request: Request) -> Request:
    return request
