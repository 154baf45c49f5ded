"""Issuing single Codes for plain requests before the framework, whose own part takes longer than all of ours."""

from typing import Final

from fastapi import FastAPI
from starlette.requests import Request

from soundmark.core.access.authorise import authorise
from soundmark.core.context import RequestContext
from soundmark.core.edge.authentication import authenticate
from soundmark.core.edge.idempotency_keys import read_keyed_request
from soundmark.core.edge.operations import OperationRoute
from soundmark.core.features.codes.issuance import routes, service
from soundmark.core.features.codes.issuance.wire import CreateCode
from soundmark.core.problems import IntentNotCanonical
from soundmark.kit.http.asgi import Message, Receive, Scope, Send
from soundmark.kit.http.requests.bodies import AT_ONCE_BYTES_MAX, parse_body
from soundmark.kit.http.responses.problems import MalformedBody
from soundmark.kit.text.ids import parse_id

_PATH: Final = "/v1/codes"
# Requests with these are for the framework: a second place that names the organisation, and bodies that come in parts.
_UNUSUAL_HEADERS: Final = frozenset({b"x-svc-organization-id", b"transfer-encoding", b"expect", b"content-encoding"})


class IssuanceShortcut:
    """An ASGI app that issues single Codes itself if the request is plain and valid, and leaves the rest to `app`.

    It judges with the functions of the route, in the route's order, and answers a problem only where the route would
    raise the same one. Before it has judged the body's shape, and for an intent without a canonical form, it hands the
    request on as if nothing had been read.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app: Final = app
        self._route: Final = _find_route()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rest: Receive | None = receive
        if scope["type"] == "http" and scope["path"] == _PATH and _is_plain(scope):
            rest = await self._try(scope, receive, send)
        if rest is not None:
            await self._app(scope, rest, send)

    async def _try(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Answer the request and return None; or return the `receive` with which the framework answers it.

        Raises: the problem that the route would raise.
        """
        scope["app"], scope["route"] = self._app, self._route
        request = Request(scope, receive)
        request.state.caller = await authenticate(request)
        messages: list[Message] = []
        request_body = await self._read_body(request, receive, messages)
        if request_body is not None:
            ctx: RequestContext = self._app.state.context
            organization_id = parse_id(request_body.organization_id)
            tenant = await authorise(ctx, request.state.caller, "code.issue", organization_id)
            issue_request = routes.make_issue_request(request_body, "single", 1, read_keyed_request(request))
            try:
                issued = await service.issue_codes(ctx, tenant, issue_request, request_id=request.state.request_id)
            except IntentNotCanonical:
                pass  # Nothing was issued. The route first judges the idempotency key, and this only then.
            else:
                await routes.answer_issued(issued)(scope, receive, send)
                return None
        return _replay(messages, receive)

    async def _read_body(self, request: Request, receive: Receive, messages: list[Message]) -> CreateCode | None:
        """Return the body of a valid request; None for any other. Everything that was received is in `messages`."""
        data = b""
        while not messages or messages[-1].get("more_body", False):
            messages.append(await receive())
            data += messages[-1].get("body", b"")
            if messages[-1]["type"] != "http.request" or len(data) > AT_ONCE_BYTES_MAX:
                return None
        try:
            body = await parse_body(data, self._route.body_limits, self._route.member_names)
        except MalformedBody:
            return None
        if body.excess:
            return None
        field = self._route.body_field
        assert field is not None, "the operation has a body"
        value, errors = field.validate(body.value, loc=("body",))
        if errors:
            return None
        request.state.json = body.value
        valid: CreateCode = value
        return valid


def _find_route() -> OperationRoute:
    return next(route for route in routes.operations.routes if route.path == _PATH and route.methods == {"POST"})


def _is_plain(scope: Scope) -> bool:
    """Return whether method, query and headers are those that nearly all issuances have."""
    if scope["method"] != "POST" or scope["query_string"]:
        return False
    names = [name for name, _ in scope["headers"]]
    media_types = [value for name, value in scope["headers"] if name == b"content-type"]
    return (
        media_types == [b"application/json"]
        and names.count(b"idempotency-key") <= 1
        and _UNUSUAL_HEADERS.isdisjoint(names)
    )


def _replay(messages: list[Message], receive: Receive) -> Receive:
    """Return a `receive` that begins with the messages again."""
    again = iter(messages)

    async def replay() -> Message:
        message = next(again, None)
        return await receive() if message is None else message

    return replay
