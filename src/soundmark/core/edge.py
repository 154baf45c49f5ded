"""How a request becomes a context, a caller and a scope, and how a route says what it needs and what it answers."""

import re
from typing import Annotated, Any, Final

from fastapi import Depends, Header, Path, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BeforeValidator, Field, WithJsonSchema
from starlette.requests import Request

from soundmark.core.access.authorise import authorise, authorise_caller, authorise_user
from soundmark.core.access.credentials import Credentials
from soundmark.core.access.policy import POLICY, Action
from soundmark.core.context import RequestContext
from soundmark.core.domain.scope import Caller, TenantScope, User
from soundmark.core.problems import IntentNotCanonical
from soundmark.kit.http import ACCESS, Scope, pointer_to, refuse_unknown_parameters
from soundmark.kit.paging import CURSOR_CHARS_MAX, CURSOR_CHARS_MIN, LIMIT_DEFAULT, LIMIT_MAX
from soundmark.kit.problems import FieldError, Problem, Unauthenticated
from soundmark.kit.refusals import ClientAddresses, RefusalLimit
from soundmark.kit.strict_json import Unrepresentable

_DIGITS: Final = re.compile(r"[0-9]{1,9}")


# Asynchronous though they wait for nothing: the framework runs others in a thread, which costs more than they do.
async def _context(request: Request) -> RequestContext:
    context: RequestContext = request.app.state.context
    return context


async def _request_id(request: Request) -> str:
    identity: str = request.state.request_id
    return identity


async def _client(request: Request) -> bytes:
    clients: ClientAddresses = request.app.state.clients
    return clients.digest_of(request.scope)


async def _refused_events(request: Request) -> RefusalLimit:
    limit: RefusalLimit = request.app.state.refused_events
    return limit


Ctx = Annotated[RequestContext, Depends(_context)]
ClientDigest = Annotated[bytes, Depends(_client)]
RefusedEvents = Annotated[RefusalLimit, Depends(_refused_events)]
RequestId = Annotated[str, Depends(_request_id)]
OrganizationPath = Annotated[
    str, Path(max_length=160, description="The organisation's id.", examples=["org_b2xkLXJhZGlvLWV4YW1wbA"])
]
_AGREEING: Final = "May be given, and must name the same organisation as the rest of the request then (else 422)."
_EITHER: Final = "The organisation to act in: named here, in {other}, or in both alike (else 422)."
_QUERY: Final[dict[str, Any]] = {"alias": "organization_id", "max_length": 160}
_HEADER: Final[dict[str, Any]] = {"alias": "X-Svc-Organization-Id", "max_length": 160}
OrganizationQuery = Annotated[str, Query(**_QUERY, description="The organisation to act in.")]
EitherQuery = Annotated[
    str | None, Query(**_QUERY, description=_EITHER.format(other="the header `X-Svc-Organization-Id`"))
]
EitherHeader = Annotated[
    str | None, Header(**_HEADER, description=_EITHER.format(other="the query parameter `organization_id`"))
]
AgreeingQuery = Annotated[str | None, Query(**_QUERY, description=_AGREEING)]
AgreeingHeader = Annotated[str | None, Header(**_HEADER, description=_AGREEING)]


def _in_digits(text: Any) -> Any:
    """A number of a query is written in digits and nothing else: `1.0`, ` 5` and `1_0` are none."""
    if isinstance(text, str) and _DIGITS.fullmatch(text) is None:
        raise ValueError("must be written in decimal digits")
    return text


_Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX), BeforeValidator(_in_digits)]
Limit = Annotated[_Limit, Query(description=f"Entries on a page; {LIMIT_DEFAULT} unless told.")]
# Published, not judged here: a text that is too long is `invalid_cursor` like every other one that we did not write.
_OpaqueCursor = Annotated[
    str,
    WithJsonSchema(
        {"type": "string", "minLength": CURSOR_CHARS_MIN, "maxLength": CURSOR_CHARS_MAX, "pattern": "^[A-Za-z0-9_-]+$"}
    ),
]
CursorText = Annotated[
    _OpaqueCursor | None,
    Query(description="`next_cursor` of the page before, for the same filters (else 422 `invalid_cursor`)."),
]


async def authenticate(request: Request) -> Caller:
    """Return the caller behind the one `Authorization` header, unless its address was refused too often.

    Raises: Unauthenticated for no, two, malformed and unknown credentials alike; RateLimited; EmailNotVerified;
        IdentityProviderUnavailable.
    """
    refused: RefusalLimit = request.app.state.refused_credentials
    clients: ClientAddresses = request.app.state.clients
    client = clients.digest_of(request.scope)
    await refused.check(client)
    try:
        return await _find_caller(request)
    except Unauthenticated:
        await refused.count(client)
        raise


async def _find_caller(request: Request) -> Caller:
    headers = request.headers.getlist("authorization")
    if len(headers) != 1:
        raise Unauthenticated
    scheme, _, credential = headers[0].partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated
    credentials: Credentials = request.app.state.credentials
    return await credentials.caller_of(credential, request.client.host if request.client else None)


def describe_refused(clients: ClientAddresses, scope: Scope) -> dict[str, str]:
    """Return what the log says of whose request was refused: the caller's id where it is known, and the address digest.

    Never an address, an e-mail or a credential.
    """
    caller: Caller | None = scope.get("state", {}).get("caller")
    if caller is None:
        return clients.describe_refused(scope)
    identity = caller.subject_id if isinstance(caller, User) else caller.id
    return {"caller": identity, **clients.describe_refused(scope)}


class CallerOf:
    """Dependency: the caller of a route that happens in no organisation."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request) -> User:
        user = authorise_user(request.state.caller, self.action)
        refuse_unknown_parameters(request)
        return user


class AnyCaller:
    """Dependency: the caller of a route in no organisation that server keys may call too."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request) -> Caller:
        caller = authorise_caller(request.state.caller, self.action)
        refuse_unknown_parameters(request)
        return caller


class TenantInQuery:
    """Dependency: the scope of a route whose organisation stands in the query."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(
        self,
        request: Request,
        ctx: Ctx,
        in_query: OrganizationQuery,
        in_header: AgreeingHeader = None,  # noqa: ARG002 - published here, read as it stands in the request
    ) -> TenantScope:
        return await _open_tenant(request, ctx, self.action, in_query)


class TenantInQueryOrHeader:
    """Dependency: the scope of a route whose organisation stands in the query, in a header, or in both alike."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(
        self, request: Request, ctx: Ctx, in_query: EitherQuery = None, in_header: EitherHeader = None
    ) -> TenantScope:
        # The header where both are there: the query is then refused by its name if it says something else.
        organization_id = in_header if in_header is not None else in_query
        if organization_id is None:
            raise invalid("query", "organization_id", "is required here or as the header X-Svc-Organization-Id")
        return await _open_tenant(request, ctx, self.action, organization_id)


class TenantInPath:
    """Dependency: the scope of a route whose organisation stands in the path."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(
        self,
        request: Request,
        ctx: Ctx,
        organization_id: OrganizationPath,
        in_query: AgreeingQuery = None,  # noqa: ARG002 - published here, read as they stand in the request
        in_header: AgreeingHeader = None,  # noqa: ARG002 - as above
    ) -> TenantScope:
        return await _open_tenant(request, ctx, self.action, organization_id)


class TenantInBody:
    """Dependency: the scope of a route whose organisation stands in its body.

    It reads the one member that it needs from the parsed body, so that strangers learn that the organisation is not
    there before they learn anything about the shape of the rest.
    """

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(
        self,
        request: Request,
        ctx: Ctx,
        in_query: AgreeingQuery = None,  # noqa: ARG002 - published here, read as they stand in the request
        in_header: AgreeingHeader = None,  # noqa: ARG002 - as above
    ) -> TenantScope:
        body = request.state.json
        organization_id = body.get("organization_id") if isinstance(body, dict) else None
        if not isinstance(organization_id, str):
            raise invalid("body", "organization_id", "must be there, as a string")
        return await _open_tenant(request, ctx, self.action, organization_id)


async def _open_tenant(request: Request, ctx: RequestContext, action: Action, organization_id: str) -> TenantScope:
    """Return the caller's scope in the organisation, and note it for who has to judge a refused request further.

    In this order: that the request names one organisation only (422), the tenant and the caller's role in it (404,
    403), the names of the query parameters (422).
    """
    for location, name, values in (
        ("query", "organization_id", request.query_params.getlist("organization_id")),
        ("header", "X-Svc-Organization-Id", request.headers.getlist("x-svc-organization-id")),
    ):
        if any(value != organization_id for value in values):
            raise invalid(location, name, "names another organisation than the rest of the request")
    scope = await authorise(ctx, request.state.caller, action, organization_id)
    request.state.scope = scope
    refuse_unknown_parameters(request)
    return scope


def invalid(location: str, name: str, message: str) -> RequestValidationError:
    """The failure of one named member or parameter that no model can state."""
    return RequestValidationError([{"loc": (location, name), "msg": message, "type": "value_error", "input": None}])


def refined(error: RequestValidationError) -> Problem | None:
    """`intent_not_canonical` where a number inside the intent is what no model accepts."""
    for each in error.errors():
        if tuple(each["loc"][:2]) == ("body", "intent") and isinstance(each.get("input"), Unrepresentable):
            refused = FieldError("body", pointer_to(each["loc"][1:]), "must be a number that a double holds exactly")
            return IntentNotCanonical("The intent holds a number that a double cannot hold exactly.", errors=(refused,))
    return None


def needs(action: Action) -> dict[str, Any]:
    """The OpenAPI extension that states what a route needs of its caller."""
    rule = POLICY[action]
    return {
        ACCESS: {
            "action": action,
            "public": False,
            "credentials": list(rule.credentials),
            "roles": sorted(rule.roles) if rule.roles is not None else [],
            "mfa": rule.mfa,
            "key_scope": rule.key_scope,
            "platform": rule.is_platform,
            "note": rule.note,
        }
    }


PUBLIC: Final[dict[str, Any]] = {
    ACCESS: {
        "action": None,
        "public": True,
        "credentials": [],
        "roles": [],
        "mfa": False,
        "key_scope": None,
        "platform": False,
        "note": None,
    }
}


def problems(*classes: type[Problem]) -> dict[int | str, dict[str, Any]]:
    """The problems of a route that its action and its body do not imply, for OpenAPI."""
    answers: dict[int | str, dict[str, Any]] = {}
    for problem in classes:
        answer = answers.setdefault(int(problem.kind), {"x-problems": []})
        answer["x-problems"].append(problem.code)
    return answers
