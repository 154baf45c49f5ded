"""The HTTP edge: problem documents, request ids, body limits, strict JSON, and what every answer carries."""

import functools
import itertools
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from soundmark.kit.bodies import SMALL_BODY, BodyLimits, Excess, read_json_body
from soundmark.kit.closed_query import has_too_many_parameters, query_faults
from soundmark.kit.entropy import Entropy
from soundmark.kit.problems import (
    ERRORS_MAX,
    FieldError,
    InternalError,
    Location,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    PayloadTooLarge,
    Problem,
    Unauthenticated,
    ValidationFailed,
)
from soundmark.kit.strict_json import Unrepresentable

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

PROBLEM_TYPE: Final = "application/problem+json"
ACCESS: Final = "x-svc-access"  # The OpenAPI extension in which every route says what it needs of its caller.

GONE: Final = 499  # What is noted of a caller who left before the answer; nobody reads it.

_REFUSALS: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
_PROBES: Final = frozenset({"/healthz", "/readyz"})
_NAME_CHARS_MAX: Final = 160  # Of a member that a pointer names; the longest that we know has 32.
_REQUEST_ID_BYTES: Final = 16
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9_-]{1,64}")
_LOCATIONS: Final[dict[str, Location]] = {"body": "body", "query": "query", "path": "path", "header": "header"}
_log: Final = structlog.get_logger()

# Which problem a bare framework error stands for; the framework raises these before any route of ours runs.
_FRAMEWORK_PROBLEMS: Final[dict[int, type[Problem]]] = {
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.METHOD_NOT_ALLOWED: MethodNotAllowed,
    HTTPStatus.NOT_ACCEPTABLE: NotAcceptable,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: PayloadTooLarge,
    HTTPStatus.UNAUTHORIZED: Unauthenticated,
}


def request_id(headers: list[tuple[bytes, bytes]], entropy: Entropy) -> str:
    """The caller's own `X-Request-Id` when it is well-formed, else a new one."""
    for name, value in headers:
        if name == b"x-request-id":
            if _REQUEST_ID.fullmatch(value):
                return value.decode("ascii")
            break
    return "req_" + entropy.take(_REQUEST_ID_BYTES).hex()


def problem_document(problem: Problem, *, base_url: str, request_id: str) -> bytes:
    """The RFC 9457 document of one problem."""
    document: dict[str, Any] = {
        "type": f"{base_url}/problems/{problem.code}",
        "title": problem.title,
        "status": int(problem.kind),
        "detail": problem.detail,
        "code": problem.code,
        "request_id": request_id,
    }
    if problem.errors:
        document["errors"] = [
            {"location": error.location, "pointer": error.pointer, "message": error.message} for error in problem.errors
        ]
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Edge:
    """An ASGI app around `app`: request id, log line, `Cache-Control`, and problems for whatever escapes.

    `HEAD` is answered wherever `GET` is. `describe_caller` returns what the log line adds about the caller of every
    request, `describe_refused` what it adds to a refused one (401, 403, 429).
    """

    app: AsgiApp
    base_url: str
    entropy: Entropy
    describe_refused: Callable[[Scope], Mapping[str, str]] = lambda _scope: {}
    describe_caller: Callable[[Scope], Mapping[str, str]] = lambda _scope: {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        identity = request_id(scope["headers"], self.entropy)
        scope.setdefault("state", {})["request_id"] = identity
        is_head = scope["method"] == "HEAD"
        answered = _Answer(send, identity, no_store=scope["path"].startswith("/v1"), is_head=is_head)
        # A copy: the server reads in its own scope whether a body is due.
        asked = {**scope, "method": "GET"} if is_head else scope
        started_s = time.perf_counter()
        try:
            with structlog.contextvars.bound_contextvars(request_id=identity):
                await self._run(asked, receive, answered)
        finally:
            # The server keeps the scope for as long as the connection is open.
            scope["state"].pop("json", None)
            _log.log(
                _level_of(scope["path"], answered.status),
                "request",
                request_id=identity,
                method=scope["method"],
                # The template, never the path: a path may hold a token.
                route=getattr(asked.get("route"), "path", None),
                status=answered.status,
                duration_ms=round((time.perf_counter() - started_s) * 1000, 1),
                **self.describe_caller(asked),
                **(self.describe_refused(asked) if answered.status in _REFUSALS else {}),
            )

    async def _run(self, scope: Scope, receive: Receive, answered: "_Answer") -> None:
        try:
            _refuse_line_end(scope["path"])
            await self.app(scope, receive, answered)
        except Exception as error:
            problem = error if isinstance(error, Problem) else InternalError()
            if isinstance(problem, InternalError):
                _log.exception("internal_error")
            if answered.is_complete:
                return  # The framework raises a mistake again after it was answered; it is logged now.
            if answered.status is not None:
                raise
            await problem_response(problem, self.base_url, answered.request_id)(scope, receive, answered)


def _refuse_line_end(path: str) -> None:
    """Raise NotFound for a path that ends in a line end.

    The framework's patterns end in `$`, which Python also matches before a line end: a second spelling of each route.
    """
    if path.endswith("\n"):
        raise NotFound


def _level_of(path: str, status: int | None) -> int:
    """Return the level at which a request is logged: whoever asks for warnings sees what went wrong, and no more."""
    if path in _PROBES:
        return logging.DEBUG  # A probe asks every few seconds and its answer interests nobody afterwards.
    if status is None or status < HTTPStatus.BAD_REQUEST or status == GONE:
        return logging.INFO
    return logging.WARNING if status < HTTPStatus.INTERNAL_SERVER_ERROR else logging.ERROR


class _Answer:
    """A `send` that adds what every answer carries, leaves out the body for HEAD, and remembers the status."""

    def __init__(self, send: Send, identity: str, *, no_store: bool, is_head: bool) -> None:
        self._send = send
        self.request_id = identity
        self._no_store = no_store
        self._is_head = is_head
        self.status: int | None = None
        self.is_complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            headers = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
            headers.append((b"x-content-type-options", b"nosniff"))
            if self._no_store and not any(name.lower() == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        elif self._is_head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)
        self.is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)


def problem_response(problem: Problem, base_url: str, identity: str) -> Response:
    """The response of one problem, headers included."""
    return Response(
        problem_document(problem, base_url=base_url, request_id=identity),
        status_code=int(problem.kind),
        media_type=PROBLEM_TYPE,
        headers=problem.headers,
    )


def install_problem_handlers(
    app: Starlette,
    base_url: str,
    refine: Callable[[RequestValidationError], Problem | None] = lambda _error: None,
) -> None:
    """Let every failure of `app` answer a problem document.

    `refine` may name a more exact problem for what was found invalid; None keeps `validation_failed`.
    """

    def answer(request: Request, problem: Problem) -> Response:
        return problem_response(problem, base_url, request.state.request_id)

    async def on_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem), "registered for Problem"
        return answer(request, error)

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError), "registered for RequestValidationError"
        return answer(request, refine(error) or ValidationFailed(errors=_field_errors(error)))

    async def on_framework(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException), "registered for HTTPException"
        problem = _FRAMEWORK_PROBLEMS.get(error.status_code, InternalError)()
        if isinstance(problem, MethodNotAllowed):
            problem.headers["allow"] = _allowed_methods(app, request)
        return answer(request, problem)

    async def on_gone(_request: Request, _: Exception) -> Response:
        return Response(status_code=GONE)

    async def on_mistake(request: Request, _: Exception) -> Response:
        return answer(request, InternalError())

    app.add_exception_handler(Exception, on_mistake)
    app.add_exception_handler(ClientDisconnect, on_gone)
    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_framework)


def _allowed_methods(app: Starlette, request: Request) -> str:
    """Every method that some route has on this path; the framework would name those of the first route only.

    A path that is spelt out is not also one with a parameter: `/things/all` has not the methods of `/things/{id}`.
    """
    matching = [route for route in _leaves(app.routes) if route.matches(request.scope)[0] is not Match.NONE]
    nearest = [route for route in matching if "{" not in getattr(route, "path", "")] or matching
    methods = {method for route in nearest for method in getattr(route, "methods", None) or ()}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def _leaves(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """The routes themselves: the framework keeps a router that was included, as ours are without a prefix, as one."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is None:
            yield route
        else:
            yield from _leaves(included.routes)


def body_errors(error: ValidationError) -> tuple[FieldError, ...]:
    """Return what a model refuses about a body that was validated without the framework."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    return tuple(_field_error({**fault, "loc": ("body", *fault["loc"])}) for fault in faults[:ERRORS_MAX])


def _field_errors(error: RequestValidationError) -> tuple[FieldError, ...]:
    return tuple(_field_error(fault) for fault in error.errors()[:ERRORS_MAX])


def _field_error(error: dict[str, Any]) -> FieldError:
    where, *rest = error["loc"]
    message = error["msg"].removeprefix("Value error, ")
    return FieldError(_LOCATIONS.get(str(where), "body"), pointer_to(rest), message)


def pointer_to(steps: Iterable[int | str]) -> str:
    """Return the JSON pointer (RFC 6901) to what lies behind these members and places.

    It ends in front of a name that no member of ours could have: an answer does not grow with what was sent.
    """
    near = itertools.takewhile(lambda step: len(str(step)) <= _NAME_CHARS_MAX, steps)
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in near)


class JsonRoute(APIRoute):
    """A route whose body is read as I-JSON, before anything else of the request is judged.

    Order of judgement: media type, size and syntax of the body (415, 413, 400), then the route's dependencies, then the
    shapes of parameters and body (422). The query string is closed.
    """

    body_limits: BodyLimits = SMALL_BODY

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if self.body_field is not None:
            said = {"description": f"At most {self.body_limits.bytes_max // 1024:,} KiB."}
            self.openapi_extra = {**(self.openapi_extra or {}), "requestBody": said}

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
        """Whether the query string is judged before the route's dependencies, or by one of them."""
        return True

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_body = self.body_field is not None

        async def strict(request: Request) -> Response:
            if has_too_many_parameters(request.scope["query_string"]) or self.judges_query_first():
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
        """Read the body so that the framework finds it parsed already, and let it judge the rest."""
        excess = await self._read_body(request)
        try:
            return await handle(request)
        except RequestValidationError:
            if excess:
                raise _excess_error(excess) from None
            raise

    async def _read_body(self, request: Request) -> Sequence[Excess]:
        """Put the body where the framework looks for it; return why it must be refused all the same."""
        body = await read_json_body(request, self.body_limits, self.member_names)
        request._body = body.data  # noqa: SLF001 - where Starlette keeps what was read once
        request.state.json = body.value
        # No model is shown what would cost it too much: it is refused once the tenant was judged.
        request._json = Unrepresentable() if body.excess else body.value  # noqa: SLF001 - as above
        return body.excess


class StrictRoute(JsonRoute):
    """A route whose caller is known before its body is read: a missing credential (401) comes before all else.

    Each says in its `ACCESS` extension whether it is `public`; `app.state.authenticate` knows the callers of the
    others. Tenant and role are its dependencies, which judge the query string after both.
    """

    def judges_query_first(self) -> bool:
        """Whether nobody has to be known first."""
        return bool((self.openapi_extra or {})[ACCESS]["public"])

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        is_public = (self.openapi_extra or {})[ACCESS]["public"]

        async def authenticated(request: Request) -> Response:
            if not is_public:
                request.state.caller = await request.app.state.authenticate(request)
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


def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a query string that holds anything but the parameters of the route, each at most once.

    Raises: RequestValidationError.
    """
    faults = _unknown_parameters(request)
    if faults:
        raise RequestValidationError(faults)


def _name_unknown_parameters(request: Request, error: RequestValidationError) -> None:
    """Raise `error` anew with the unknown parameters in front, if it does not name them: one may be what is missing.

    Raises: RequestValidationError.
    """
    said = error.errors()
    known = {tuple(fault["loc"]) for fault in said}
    unsaid = [fault for fault in _unknown_parameters(request) if fault["loc"] not in known]
    if unsaid:
        raise RequestValidationError([*unsaid, *said]) from None


def _unknown_parameters(request: Request) -> list[dict[str, Any]]:
    query_string = request.scope["query_string"]
    faults = query_faults(query_string, request.scope["route"].query_names) if query_string else ()
    return [
        {"loc": (fault.location, fault.pointer[1:]), "msg": fault.message, "type": "value_error", "input": None}
        for fault in faults
    ]


def _excess_error(found: Iterable[Excess]) -> RequestValidationError:
    return RequestValidationError(
        [
            {"loc": ("body", *excess.place), "msg": excess.message, "type": "value_error", "input": excess.value}
            for excess in found
        ]
    )
