"""The routes that issue Codes, and those that recover the response of an issuance."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Query
from starlette.responses import Response

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.issue_request import IssueRequest
from soundmark.core.domain.codes.receipt import IssuanceRoute, KeyedRequest
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.edge.examples import CODE
from soundmark.core.edge.idempotency_keys import KEY_HEADER, KEY_OF_DRY_RUN, Keyed, KeyRule, OptionallyKeyed
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, RequestId, Tenant
from soundmark.core.edge.refusals import invalid
from soundmark.core.features.codes.issuance import service
from soundmark.core.features.codes.issuance.issue_group import IssueResult
from soundmark.core.features.codes.issuance.preconditions import quota_headers
from soundmark.core.features.codes.issuance.wire import CreateCode, CreateCodes, IssuedCodes, Verdict
from soundmark.core.problems import (
    AudienceUnavailable,
    CampaignArchived,
    CampaignNotFound,
    CampaignNotOpen,
    CodeIssueNotFound,
    IdempotencyConflict,
    IntentNotCanonical,
    ProjectNotFound,
    QuotaExceeded,
    ResourceDeletionInProgress,
)
from soundmark.core.views.codes import issued_view
from soundmark.kit.http.requests.bodies import LARGE_BODY
from soundmark.wire.private.problems import IntegrationNotFound, IntegrationRevoked, OrganizationSuspended
from soundmark.wire.xr_code import CodeIssued

_QUOTA_HEADERS: Final[dict[str, Any]] = {
    name: {"schema": {"type": "string"}, "description": description, "example": example}
    for name, description, example in (
        ("RateLimit-Policy", "The monthly quota.", '"codes";q=100'),
        ("RateLimit", "The remaining quota, and the seconds until it is reset.", '"codes";r=88;t=864000'),
    )
}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    HTTPStatus.OK: {"model": Verdict, "description": "The result of a dry run."},
    HTTPStatus.CREATED: {"headers": _QUOTA_HEADERS},
}

DryRun = Annotated[
    bool,
    Query(description="Only report whether the request would succeed. Cannot be combined with an idempotency key."),
]


async def _try_unreadable(ctx: RequestContext, scope: TenantScope) -> Response:
    return _verdict(await service.try_unreadable_intent(ctx, scope))


_ISSUE_PROBLEMS: Final = (
    ProjectNotFound,
    IdempotencyConflict,
    CampaignNotFound,
    CampaignArchived,
    CampaignNotOpen,
    IntegrationNotFound,
    IntegrationRevoked,
    AudienceUnavailable,
    IntentNotCanonical,
    QuotaExceeded,
    ResourceDeletionInProgress,
    OrganizationSuspended,
)
_RECOVERY_PROBLEMS: Final = (ProjectNotFound, CodeIssueNotFound, IdempotencyConflict, IntentNotCanonical)


def _issue(route: IssuanceRoute) -> Operation:
    return Operation(
        "code.issue",
        tenant="body",
        problems=_ISSUE_PROBLEMS,
        body_limits=LARGE_BODY,
        key=KeyRule(route),
        try_unreadable=_try_unreadable,
    )


def _recover(route: IssuanceRoute) -> Operation:
    return Operation(
        "code.recover",
        tenant="body",
        problems=_RECOVERY_PROBLEMS,
        body_limits=LARGE_BODY,
        key=KeyRule(route, is_required=True),
    )


operations = Operations("Codes")


@operations.add(
    "POST",
    "/v1/codes",
    _issue("single"),
    status=HTTPStatus.CREATED,
    response_model=CodeIssued,
    responses=_RESPONSES,
    example={201: issued_view(CODE), 200: Verdict(would_issue=True, code=None, quota_remaining=88)},
)
async def issue_code(
    ctx: Ctx,
    scope: Tenant,
    body: CreateCode,
    keyed: OptionallyKeyed,
    request_id: RequestId,
    dry_run: DryRun = False,
) -> Response:
    """Issue a signed Code."""
    request = make_issue_request(body, "single", 1, keyed)
    return await _issue_or_try(ctx, scope, request, request_id, is_dry_run=dry_run)


@operations.add(
    "POST",
    "/v1/codes/batch",
    _issue("batch"),
    status=HTTPStatus.CREATED,
    response_model=IssuedCodes,
    responses=_RESPONSES,
    example={
        201: IssuedCodes(data=[issued_view(CODE)]),
        200: Verdict(would_issue=False, code=QuotaExceeded.code, quota_remaining=7),
    },
)
async def issue_codes(
    ctx: Ctx,
    scope: Tenant,
    body: CreateCodes,
    keyed: OptionallyKeyed,
    request_id: RequestId,
    dry_run: DryRun = False,
) -> Response:
    """Issue up to 100 signed Codes, all or none. They differ only in their ids and tokens."""
    request = make_issue_request(body, "batch", body.count, keyed)
    return await _issue_or_try(ctx, scope, request, request_id, is_dry_run=dry_run)


@operations.add("POST", "/v1/codes/recover", _recover("single"), response_model=CodeIssued, example=issued_view(CODE))
async def recover_code(ctx: Ctx, scope: Tenant, body: CreateCode, keyed: Keyed) -> Response:
    """Return the response of an earlier issuance with this key and body, for up to 24 hours. Issues nothing."""
    request = make_issue_request(body, "single", 1, keyed)
    return _json(await service.recover_issuance(ctx, scope, request), HTTPStatus.OK)


@operations.add(
    "POST",
    "/v1/codes/batch/recover",
    _recover("batch"),
    response_model=IssuedCodes,
    example=IssuedCodes(data=[issued_view(CODE)]),
)
async def recover_codes(ctx: Ctx, scope: Tenant, body: CreateCodes, keyed: Keyed) -> Response:
    """Return the response of an earlier batch issuance with this key and body, for up to 24 hours. Issues nothing."""
    request = make_issue_request(body, "batch", body.count, keyed)
    return _json(await service.recover_issuance(ctx, scope, request), HTTPStatus.OK)


def make_issue_request(body: CreateCode, route: IssuanceRoute, count: int, keyed: KeyedRequest | None) -> IssueRequest:
    """Return what a valid body asks for."""
    return IssueRequest(
        project_id=body.project_id,
        campaign_id=body.campaign_id,
        issuer=body.issuer,
        expires_at=body.expires_at,
        intent={"type": body.intent.type, "action": body.intent.action, "resource": body.intent.resource},
        integration_id=body.audience.integration_id if body.audience is not None else None,
        route=route,
        count=count,
        keyed=keyed,
    )


async def _issue_or_try(
    ctx: RequestContext, scope: TenantScope, request: IssueRequest, request_id: str, *, is_dry_run: bool
) -> Response:
    if is_dry_run:
        if request.keyed is not None:
            raise invalid("header", KEY_HEADER, KEY_OF_DRY_RUN)
        return _verdict(await service.try_issuance(ctx, scope, request, request_id=request_id))
    issued: IssueResult = await service.issue_codes(ctx, scope, request, request_id=request_id)
    return answer_issued(issued)


def answer_issued(issued: IssueResult) -> Response:
    """Return the response to an issuance."""
    return _json(issued.response, HTTPStatus.CREATED, quota_headers(issued.quota))


def _verdict(outcome: service.DryRun) -> Response:
    view = Verdict(
        would_issue=outcome.problem_code is None,
        code=outcome.problem_code,
        quota_remaining=outcome.quota.remaining,
    )
    return _json(view.model_dump_json().encode(), HTTPStatus.OK)


def _json(body: bytes, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status_code=status, media_type="application/json", headers=headers)
