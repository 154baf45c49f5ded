"""The arguments of endpoints: parts of the process, the authorised scope, and parameters that many operations share."""

import re
from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import BeforeValidator, Field, WithJsonSchema
from starlette.requests import Request

from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.scope import Caller, TenantScope, User
from soundmark.core.edge.ids import ResourceId
from soundmark.kit.http.requests.lean_route import FromRequest
from soundmark.kit.http.requests.refusals import ClientAddresses, RefusalLimit
from soundmark.kit.text.paging import CURSOR_CHARS_MAX, CURSOR_CHARS_MIN, LIMIT_DEFAULT, LIMIT_MAX

_DIGITS: Final = re.compile(r"[0-9]{1,9}")


def _context(request: Request) -> RequestContext:
    context: RequestContext = request.app.state.context
    return context


def _request_id(request: Request) -> str:
    identity: str = request.state.request_id
    return identity


def _client(request: Request) -> bytes:
    clients: ClientAddresses = request.app.state.clients
    return clients.digest_of(request.scope)


def _refused_events(request: Request) -> RefusalLimit:
    limit: RefusalLimit = request.app.state.refused_events
    return limit


def _scope(request: Request) -> TenantScope:
    scope: TenantScope = request.state.scope
    return scope


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


Ctx = Annotated[RequestContext, FromRequest(_context)]
ClientDigest = Annotated[bytes, FromRequest(_client)]
RefusedEvents = Annotated[RefusalLimit, FromRequest(_refused_events)]
RequestId = Annotated[str, FromRequest(_request_id)]
# The authorised scope of an operation in an organisation; below, the authorised caller of all other operations.
Tenant = Annotated[TenantScope, FromRequest(_scope)]
CallingUser = Annotated[User, FromRequest(_caller)]
AnyCaller = Annotated[Caller, FromRequest(_caller)]
OrganizationPath = Annotated[
    str, Path(max_length=160, description="The organisation's id.", examples=["org_b2xkLXJhZGlvLWV4YW1wbA"])
]
XrIdPath = Annotated[ResourceId, Path(description="The Code's id.", examples=["xr_bm9yZGxpY2h0LWV4YW1wbA"])]


def _require_digits(text: Any) -> Any:
    """Reject a number in a query that is not written in digits only, such as `1.0`, ` 5` or `1_0`."""
    if isinstance(text, str) and _DIGITS.fullmatch(text) is None:
        raise ValueError("must be written in decimal digits")
    return text


_Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX), BeforeValidator(_require_digits)]
Limit = Annotated[_Limit, Query(description=f"The number of entries on a page. Default: {LIMIT_DEFAULT}.")]
# Published but not enforced here: a text that is too long is `invalid_cursor`, like any other cursor that is not ours.
_OpaqueCursor = Annotated[
    str,
    WithJsonSchema(
        {"type": "string", "minLength": CURSOR_CHARS_MIN, "maxLength": CURSOR_CHARS_MAX, "pattern": "^[A-Za-z0-9_-]+$"}
    ),
]
CursorText = Annotated[
    _OpaqueCursor | None,
    Query(description="The `next_cursor` of the previous page, with the same filters (else 422 `invalid_cursor`)."),
]
