"""The ASGI app around every component: request ids, traces, the log line, and problem documents for all errors."""

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.http.asgi import AsgiApp, Header, Message, Receive, Scope, Send
from soundmark.kit.http.responses.problem_documents import problem_response
from soundmark.kit.http.responses.problems import (
    InternalError,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    PayloadTooLarge,
    Problem,
    Unauthenticated,
)
from soundmark.kit.tracing.spans import Place, enter_request

GONE: Final = 499  # The logged status for a caller who left before the response; nobody receives it.

_REFUSALS: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
_PROBES: Final = frozenset({"/healthz", "/readyz"})
_REQUEST_ID_BYTES: Final = 16
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9_-]{1,64}")
_log: Final = structlog.get_logger()

# The problems for errors of the framework, which it raises before any route of ours runs.
_FRAMEWORK_PROBLEMS: Final[dict[int, type[Problem]]] = {
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.METHOD_NOT_ALLOWED: MethodNotAllowed,
    HTTPStatus.NOT_ACCEPTABLE: NotAcceptable,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: PayloadTooLarge,
    HTTPStatus.UNAUTHORIZED: Unauthenticated,
}


def request_id(headers: list[Header], entropy: Entropy) -> str:
    """Return the caller's own `X-Request-Id` if it is well-formed, or else a new one."""
    for name, value in headers:
        if name == b"x-request-id":
            if _REQUEST_ID.fullmatch(value):
                return value.decode("ascii")
            break
    return "req_" + entropy.take(_REQUEST_ID_BYTES).hex()


@dataclass(frozen=True, slots=True)
class HttpEdge:
    """An ASGI app around `app`: request id, trace, log line, `Cache-Control`, and problem documents for all errors.

    `HEAD` is answered wherever `GET` is, and cookies are left out. `describe_caller` returns what to log about the
    caller of every request, `describe_refused` what to log in addition about a refused one (401, 403, 429).
    `is_trusted` returns whether the sender of a request may decide that its trace is sampled.
    """

    app: AsgiApp
    base_url: str
    entropy: Entropy
    describe_refused: Callable[[Scope], Mapping[str, str]] = lambda _scope: {}
    describe_caller: Callable[[Scope], Mapping[str, str]] = lambda _scope: {}
    is_trusted: Callable[[Scope], bool] = lambda _scope: False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_recorded = scope["path"] not in _PROBES
        with enter_request(scope, self.entropy, self.is_trusted, is_recorded=is_recorded) as place:
            await self._answer(scope, receive, send, place)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, place: Place) -> None:
        identity = request_id(scope["headers"], self.entropy)
        scope.setdefault("state", {})["request_id"] = identity
        is_head = scope["method"] == "HEAD"
        answered = _Answer(send, identity, no_store=scope["path"].startswith("/v1"), is_head=is_head)
        # Copies, because the server checks the method in its own scope to decide whether to send a body.
        inner_scope = {**scope, "method": "GET"} if is_head else scope
        if any(name == b"cookie" for name, _ in scope["headers"]):
            # No component behind this edge reads cookies, but the framework would decode them for every request.
            headers = [header for header in scope["headers"] if header[0] != b"cookie"]
            inner_scope = {**inner_scope, "headers": headers}
        started_s = time.perf_counter()
        try:
            with structlog.contextvars.bound_contextvars(request_id=identity):
                await self._run(inner_scope, receive, answered)
        finally:
            # Removed, because the server keeps the scope as long as the connection is open.
            scope["state"].pop("json", None)
            # The template, never the path, because a path may contain a token.
            route = getattr(inner_scope.get("route"), "path", None)
            place.note_response(scope["method"], route, answered.status, identity)
            _log.log(
                _level_of(scope["path"], answered.status),
                "request",
                request_id=identity,
                method=scope["method"],
                route=route,
                status=answered.status,
                duration_ms=round((time.perf_counter() - started_s) * 1000, 1),
                **self.describe_caller(inner_scope),
                **(self.describe_refused(inner_scope) if answered.status in _REFUSALS else {}),
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
                return  # The framework raises an unexpected error again after answering it; it has been logged now.
            if answered.status is not None:
                raise
            await problem_response(problem, self.base_url, answered.request_id)(scope, receive, answered)


def _refuse_line_end(path: str) -> None:
    """Raise NotFound for a path that ends in a line end.

    The framework's patterns end in `$`, which Python also matches before a line end, so each route would have a second
    spelling.
    """
    if path.endswith("\n"):
        raise NotFound


def _level_of(path: str, status: int | None) -> int:
    """Return the level at which a request is logged: errors of the caller are warnings, our own are errors."""
    if path in _PROBES:
        return logging.DEBUG  # A probe arrives every few seconds, and nobody needs its result later.
    if status is None or status < HTTPStatus.BAD_REQUEST or status == GONE:
        return logging.INFO
    return logging.WARNING if status < HTTPStatus.INTERNAL_SERVER_ERROR else logging.ERROR


class _Answer:
    """A `send` that adds the headers of every response, leaves out the body for HEAD, and records the status."""

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


def install_problem_handlers(app: Starlette, base_url: str) -> None:
    """Make `app` answer every failure with a problem document."""

    def answer(request: Request, problem: Problem) -> Response:
        return problem_response(problem, base_url, request.state.request_id)

    async def on_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem), "registered for Problem"
        return answer(request, error)

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
    app.add_exception_handler(HTTPException, on_framework)


def _allowed_methods(app: Starlette, request: Request) -> str:
    """Return every method that some route has on this path; the framework would name only those of the first route.

    A literal path does not also match one with a parameter: `/things/all` lacks the methods of `/things/{id}`.
    """
    matching = [route for route in _leaves(app.routes) if route.matches(request.scope)[0] is not Match.NONE]
    nearest = [route for route in matching if "{" not in getattr(route, "path", "")] or matching
    methods = {method for route in nearest for method in getattr(route, "methods", None) or ()}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def _leaves(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """Yield the single routes; the framework keeps an included router without a prefix, like ours, as one route."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is None:
            yield route
        else:
            yield from _leaves(included.routes)
