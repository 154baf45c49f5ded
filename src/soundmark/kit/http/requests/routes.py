"""Routes that read strict JSON, take a closed query string, and may need a known caller."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from soundmark.kit.http.requests.bodies import (
    SMALL_BODY,
    BodyLimits,
    Excess,
    media_type_of,
    parse_body,
    read_body,
    read_json_body,
)
from soundmark.kit.http.requests.closed_query import is_excessive, query_faults
from soundmark.kit.http.requests.strict_json import Unrepresentable
from soundmark.kit.http.responses.problem_documents import field_errors, problem_response
from soundmark.kit.http.responses.problems import Problem, UnsupportedMediaType, ValidationFailed

# Once an operator configures OpenTelemetry, the framework would record whatever it finds, bodies and errors included.
# `kit.tracing` records what we say, and nothing else does.
NO_TELEMETRY: Final[Any] = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
ACCESS: Final = "x-svc-access"  # The OpenAPI extension in which every route says what it requires of its caller.
UNANSWERED: Final = "x-unanswered"  # The codes of problems that a route never answers with; not published.


def install_validation_handler(
    app: FastAPI,
    base_url: str,
    refine: Callable[[RequestValidationError], Problem | None] = lambda _error: None,
) -> None:
    """Make `app` answer an invalid request with a problem document.

    `refine` may return a more exact problem than `validation_failed`.
    """

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError), "registered for RequestValidationError"
        problem = refine(error) or ValidationFailed(errors=field_errors(error.errors()))
        return problem_response(problem, base_url, request.state.request_id)

    app.add_exception_handler(RequestValidationError, on_invalid)


class JsonRoute(APIRoute):
    """A route whose body is read as I-JSON before the rest of the request is validated.

    Order of judgement: media type, size and syntax of the body (415, 413, 400), then the route's dependencies, then the
    shapes of parameters and body (422). The query string is closed.
    """

    body_limits: BodyLimits = SMALL_BODY

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if self.body_field is not None:
            body = {"description": f"At most {self.body_limits.bytes_max // 1024:,} KiB."}
            self.openapi_extra = {**(self.openapi_extra or {}), "requestBody": body}

    @functools.cached_property
    def query_names(self) -> frozenset[str]:
        """The names of the query parameters that the route and its dependencies take."""
        return frozenset(_query_names(self.dependant))

    @functools.cached_property
    def member_names(self) -> tuple[str, ...]:
        """The names of the members of the body."""
        model = None if self.body_field is None else self.body_field.field_info.annotation
        return tuple(getattr(model, "model_fields", ()))

    def judges_query_first(self) -> bool:
        """Return whether the query string is checked before the route's dependencies, or by one of them."""
        return True

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_body = self.body_field is not None

        async def strict(request: Request) -> Response:
            if is_excessive(request.scope["query_string"]) or self.judges_query_first():
                refuse_unknown_parameters(request)
            try:
                if takes_body:
                    return await self._judge_body(request, handle)
                return await handle(request)
            except RequestValidationError as error:
                _name_unknown_parameters(request, error)
                raise

        return strict

    async def _judge_body(
        self, request: Request, handle: Callable[[Request], Coroutine[Any, Any, Response]]
    ) -> Response:
        """Read the body, so that the framework finds it already parsed, and let the framework validate the rest."""
        excess = await self._read_body(request)
        try:
            return await handle(request)
        except RequestValidationError:
            if excess:
                raise _excess_error(excess) from None
            raise

    async def _read_body(self, request: Request) -> Sequence[Excess]:
        """Put the body where the framework looks for it; return the excess for which it must be refused."""
        body = await read_json_body(request, self.body_limits, self.member_names)
        request._body = body.data  # noqa: SLF001 - where Starlette keeps a body that was read
        request.state.json = body.value
        # A body that would cost a model too much is not validated; it is refused after the tenant was checked.
        request._json = Unrepresentable() if body.excess else body.value  # noqa: SLF001 - as above
        return body.excess


class StrictRoute(JsonRoute):
    """A route that identifies its caller before its body is read, so that a missing credential (401) comes first.

    Its `ACCESS` extension says whether it is `public`; `app.state.authenticate` identifies the callers of the others.
    Tenant and role are dependencies of the route, which check the query string after both. A body that the route does
    not take may be an empty object, and is checked with the query string.
    """

    def judges_query_first(self) -> bool:
        """Return whether the route is public, so that no caller has to be identified first."""
        return bool((self.openapi_extra or {})[ACCESS]["public"])

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        is_public = (self.openapi_extra or {})[ACCESS]["public"]
        # A route that reads its body itself publishes it.
        takes_body = self.body_field is not None or "requestBody" in (self.openapi_extra or {})
        is_bodyless = not takes_body and "GET" not in (self.methods or ())

        async def authenticated(request: Request) -> Response:
            # An app in front of the framework may have identified the caller already.
            if not is_public and not hasattr(request.state, "caller"):
                request.state.caller = await request.app.state.authenticate(request)
            if is_bodyless:
                request.state.surplus = await _list_surplus(request)
            return await handle(request)

        return authenticated


def _query_names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        shape = field.field_info.annotation
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            # One closed shape for the whole query string.
            yield from (info.alias or name for name, info in shape.model_fields.items())
        else:
            yield field.alias
    for dependency in dependant.dependencies:
        yield from _query_names(dependency)


async def _list_surplus(request: Request) -> Sequence[dict[str, Any]]:
    """Return the faults of a body where none is expected: what it holds would be ignored.

    Raises: PayloadTooLarge; UnsupportedMediaType; MalformedBody.
    Source: contract, section 1.
    """
    data = await read_body(request, SMALL_BODY.bytes_max)
    if not data:
        return ()
    if media_type_of(request) != "application/json":
        raise UnsupportedMediaType
    body = await parse_body(data, SMALL_BODY, ())
    found = body.excess or [Excess((), "must be an empty object, or absent")]
    if isinstance(body.value, dict) and not body.excess:
        found = [Excess((name,), "is not a member of this request") for name in body.value]
    return _excess_error(found).errors()


def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a query string that holds anything but the parameters of the route, each at most once.

    And refuse a body that holds anything, where the route takes none.

    Raises: RequestValidationError.
    """
    faults = _unknown_parameters(request)
    if faults:
        raise RequestValidationError(faults)


def _name_unknown_parameters(request: Request, error: RequestValidationError) -> None:
    """Raise `error` again with unknown parameters in front, if it lacks them: one may be a misspelt required parameter.

    Raises: RequestValidationError.
    """
    faults = error.errors()
    known = {tuple(fault["loc"]) for fault in faults}
    missing = [fault for fault in _unknown_parameters(request) if fault["loc"] not in known]
    if missing:
        raise RequestValidationError([*missing, *faults]) from None


def _unknown_parameters(request: Request) -> list[dict[str, Any]]:
    query_string = request.scope["query_string"]
    faults = query_faults(query_string, request.scope["route"].query_names) if query_string else ()
    return [
        *({"loc": (each.location, each.pointer[1:]), "msg": each.message, "type": "value_error"} for each in faults),
        *getattr(request.state, "surplus", ()),
    ]


def _excess_error(found: Iterable[Excess]) -> RequestValidationError:
    return RequestValidationError(
        [
            {"loc": ("body", *excess.place), "msg": excess.message, "type": "value_error", "input": excess.value}
            for excess in found
        ]
    )
