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
from soundmark.core.context import Context
from soundmark.core.domain.scope import Caller, TenantScope, User
from soundmark.core.problems import IntentNotCanonical
from soundmark.kit.http import ACCESS, pointer_to
from soundmark.kit.paging import CURSOR_CHARS_MAX, LIMIT_DEFAULT, LIMIT_MAX
from soundmark.kit.problems import FieldError, Problem, Unauthenticated
from soundmark.kit.strict_json import Unrepresentable

_DIGITS: Final = re.compile(r"[0-9]{1,9}")


# Asynchronous though they wait for nothing: the framework runs others in a thread, which costs more than they do.
async def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


async def _request_id(request: Request) -> str:
    identity: str = request.state.request_id
    return identity


Ctx = Annotated[Context, Depends(_context)]
RequestId = Annotated[str, Depends(_request_id)]
OrganizationPath = Annotated[
    str, Path(max_length=160, description="The organisation's id.", examples=["org_b2xkLXJhZGlvLWV4YW1wbA"])
]
OrganizationQuery = Annotated[str, Query(max_length=160, description="The organisation to act in.")]
OrganizationHeader = Annotated[
    str | None, Header(alias="X-Svc-Organization-Id", max_length=160, description="The organisation to act in.")
]


def _in_digits(text: Any) -> Any:
    """A number of a query is written in digits and nothing else: `1.0`, ` 5` and `1_0` are none."""
    if isinstance(text, str) and _DIGITS.fullmatch(text) is None:
        raise ValueError("must be written in decimal digits")
    return text


_Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX), BeforeValidator(_in_digits)]
Limit = Annotated[_Limit, Query(description=f"Entries on a page; {LIMIT_DEFAULT} unless told.")]
# Published, not judged here: a text that is too long is `invalid_cursor` like every other one that we did not write.
_OpaqueCursor = Annotated[str, WithJsonSchema({"type": "string", "maxLength": CURSOR_CHARS_MAX})]
CursorText = Annotated[_OpaqueCursor | None, Query(description="`next_cursor` of the page before.")]


async def authenticate(request: Request) -> Caller:
    """The caller behind the one `Authorization` header.

    Raises: Unauthenticated for no, two, malformed and unknown credentials alike; EmailNotVerified;
        IdentityProviderUnavailable.
    """
    headers = request.headers.getlist("authorization")
    if len(headers) != 1:
        raise Unauthenticated
    scheme, _, credential = headers[0].partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated
    credentials: Credentials = request.app.state.credentials
    return await credentials.caller_of(credential, request.client.host if request.client else None)


class CallerOf:
    """Dependency: the caller of a route that happens in no organisation."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request) -> User:
        return authorise_user(request.state.caller, self.action)


class AnyCaller:
    """Dependency: the caller of a route in no organisation that server keys may call too."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request) -> Caller:
        return authorise_caller(request.state.caller, self.action)


class TenantInQuery:
    """Dependency: the scope of a route whose organisation stands in the query."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request, ctx: Ctx, organization_id: OrganizationQuery) -> TenantScope:
        return await authorise(ctx, request.state.caller, self.action, organization_id)


class TenantInPath:
    """Dependency: the scope of a route whose organisation stands in the path."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request, ctx: Ctx, organization_id: OrganizationPath) -> TenantScope:
        return await authorise(ctx, request.state.caller, self.action, organization_id)


class TenantInQueryOrHeader:
    """Dependency: the scope of a route whose organisation stands in the query, in a header, or in both alike."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(
        self,
        request: Request,
        ctx: Ctx,
        x_svc_organization_id: OrganizationHeader = None,
        organization_id: Annotated[str | None, Query(max_length=160, description="The organisation to act in.")] = None,
    ) -> TenantScope:
        if organization_id is None and x_svc_organization_id is None:
            raise invalid("query", "organization_id", "is required here or as the header X-Svc-Organization-Id")
        if None not in (organization_id, x_svc_organization_id) and organization_id != x_svc_organization_id:
            raise invalid("query", "organization_id", "names another organisation than X-Svc-Organization-Id")
        chosen = organization_id if organization_id is not None else x_svc_organization_id
        assert chosen is not None, "one of the two is there"
        return await authorise(ctx, request.state.caller, self.action, chosen)


class TenantInBody:
    """Dependency: the scope of a route whose organisation stands in its body.

    It reads the one member that it needs from the parsed body, so that a stranger learns that the organisation is not
    there before he learns anything about the shape of the rest.
    """

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request, ctx: Ctx) -> TenantScope:
        body = request.state.json
        organization_id = body.get("organization_id") if isinstance(body, dict) else None
        if not isinstance(organization_id, str):
            raise invalid("body", "organization_id", "must be there, as a string")
        scope = await authorise(ctx, request.state.caller, self.action, organization_id)
        request.state.scope = scope
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
