"""Where a request names its organisation, and the authorisation of its caller there."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Header, Query
from starlette.requests import Request

from soundmark.core.access.authorise import authorise, authorise_caller
from soundmark.core.access.policy import Action
from soundmark.core.edge.parameters import OrganizationPath
from soundmark.core.edge.refusals import invalid
from soundmark.kit.http.requests.routes import refuse_unknown_parameters
from soundmark.kit.text.ids import parse_id

# "none": the operation does not belong to an organisation.
TenantPlace: TypeAlias = Literal["none", "query", "query_or_header", "path", "body"]
Dependency: TypeAlias = Callable[..., Awaitable[None]]

_AGREEING: Final = "Optional. Must name the same organisation as the rest of the request (else 422)."
_EITHER: Final = (
    "The organisation to act in. Required here or in {other}; if given in both, they must agree (else 422)."
)
_QUERY: Final[dict[str, Any]] = {"alias": "organization_id", "max_length": 160}
_HEADER: Final[dict[str, Any]] = {"alias": "X-Svc-Organization-Id", "max_length": 160}
_InQuery = Annotated[str, Query(**_QUERY, description="The organisation to act in.")]
_EitherQuery = Annotated[
    str | None, Query(**_QUERY, description=_EITHER.format(other="the header `X-Svc-Organization-Id`"))
]
_EitherHeader = Annotated[
    str | None, Header(**_HEADER, description=_EITHER.format(other="the query parameter `organization_id`"))
]
_AgreeingQuery = Annotated[str | None, Query(**_QUERY, description=_AGREEING)]
_AgreeingHeader = Annotated[str | None, Header(**_HEADER, description=_AGREEING)]


def make_authorisation(action: Action, place: TenantPlace) -> Dependency:
    """Return the dependency that authorises the caller of an operation.

    For an operation in an organisation, it stores the `scope` in the request's state, for `parameters.Tenant`.
    """

    async def in_no_organization(request: Request) -> None:
        authorise_caller(request.state.caller, action)
        refuse_unknown_parameters(request)

    async def in_query(
        request: Request,
        query: _InQuery,
        header: _AgreeingHeader = None,  # noqa: ARG001 - declared for OpenAPI; `_open` reads it from the request
    ) -> None:
        await _open(request, action, query)

    async def in_query_or_header(request: Request, query: _EitherQuery = None, header: _EitherHeader = None) -> None:
        # If both are given, the header decides, and an error about a disagreeing query parameter names that parameter.
        organization_id = header if header is not None else query
        if organization_id is None:
            raise invalid("query", "organization_id", "is required here or in the header X-Svc-Organization-Id")
        await _open(request, action, organization_id)

    async def in_path(
        request: Request,
        organization_id: OrganizationPath,
        query: _AgreeingQuery = None,  # noqa: ARG001 - declared for OpenAPI; `_open` reads it from the request
        header: _AgreeingHeader = None,  # noqa: ARG001 - as above
    ) -> None:
        await _open(request, action, organization_id)

    async def in_body(
        request: Request,
        query: _AgreeingQuery = None,  # noqa: ARG001 - declared for OpenAPI; `_open` reads it from the request
        header: _AgreeingHeader = None,  # noqa: ARG001 - as above
    ) -> None:
        # Only this member is read, so that strangers learn nothing about the body but that there is no organisation.
        body = request.state.json
        organization_id = body.get("organization_id") if isinstance(body, dict) else None
        if not isinstance(organization_id, str):
            raise invalid("body", "organization_id", "must be present and a string")
        await _open(request, action, organization_id)

    by_place: dict[TenantPlace, Dependency] = {
        "none": in_no_organization,
        "query": in_query,
        "query_or_header": in_query_or_header,
        "path": in_path,
        "body": in_body,
    }
    return by_place[place]


async def _open(request: Request, action: Action, organization_id: str) -> None:
    """Authorise the caller in the organisation.

    The checks run in this order: the request names only one organisation (422); the organisation exists for the caller
    (404) and their role allows the action (403); every query parameter is known (422).
    """
    for location, name, values in (
        ("query", "organization_id", request.query_params.getlist("organization_id")),
        ("header", "X-Svc-Organization-Id", request.headers.getlist("x-svc-organization-id")),
    ):
        if any(value != organization_id for value in values):
            raise invalid(location, name, "must name the same organisation as the rest of the request")
    request.state.scope = await authorise(
        request.app.state.context, request.state.caller, action, parse_id(organization_id)
    )
    refuse_unknown_parameters(request)
