"""The routes that issue Codes, and those that recover the response of an issuance."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Depends, Query
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.issue_request import IssueRequest
from soundmark.core.domain.codes.receipt import IssuanceRoute, KeyedRequest
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.edge.examples import CODE
from soundmark.core.edge.idempotency_keys import KEY_HEADER, OptionalKey, RequiredKey, read_keyed_request
from soundmark.core.edge.operations import JudgeRefused, Operation, Operations, Refusal
from soundmark.core.edge.parameters import Ctx, RequestId, Tenant
from soundmark.core.edge.refusals import invalid, refine_problem
from soundmark.core.features.codes.issuance import service
from soundmark.core.features.codes.issuance.issue_group import Issued
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
from soundmark.kit.text.ids import parse_id
from soundmark.wire.private.problems import IntegrationNotFound, IntegrationRevoked
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
_DRY_RUN: Final = TypeAdapter(bool)


async def _single(request: Request, key: OptionalKey = None) -> KeyedRequest | None:  # noqa: ARG001 - published here
    return read_keyed_request(request, "single")


async def _batch(request: Request, key: OptionalKey = None) -> KeyedRequest | None:  # noqa: ARG001 - as above
    return read_keyed_request(request, "batch")


async def _earlier_single(request: Request, key: RequiredKey) -> KeyedRequest | None:  # noqa: ARG001 - as above
    return read_keyed_request(request, "single")


async def _earlier_batch(request: Request, key: RequiredKey) -> KeyedRequest | None:  # noqa: ARG001 - as above
    return read_keyed_request(request, "batch")


DryRun = Annotated[
    bool, Query(description="Only report whether the request would succeed. Excludes an idempotency key.")
]


def _judge_refused(route: IssuanceRoute, *, is_recovery: bool = False) -> JudgeRefused:
    """Return a function that judges the project and idempotency key of a malformed request: they take precedence."""

    async def judge(request: Request, refusal: Refusal) -> Response | None:
        scope: TenantScope | None = getattr(request.state, "scope", None)
        if scope is None:
            return None
        ctx: RequestContext = request.app.state.context
        named = request.state.json.get("project_id")
        project_id = parse_id(named) if isinstance(named, str) else None
        await service.find_issued(ctx, scope, project_id, None)
        keyed = read_keyed_request(request, route)
        if keyed is None and is_recovery:
            raise invalid("header", KEY_HEADER, "Field required")
        is_dry_run = not is_recovery and _is_dry_run(request)
        if keyed is not None:
            _refuse_key_of_dry_run(is_dry_run=is_dry_run)
            await service.find_issued(ctx, scope, project_id, keyed)
        elif is_dry_run and _is_unreadable_intent(refusal):
            return _verdict(await service.try_unreadable_intent(ctx, scope, project_id))
        return None

    return judge


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
)
_RECOVERY_PROBLEMS: Final = (ProjectNotFound, CodeIssueNotFound, IdempotencyConflict, IntentNotCanonical)


def _issue(route: IssuanceRoute) -> Operation:
    return Operation(
        "code.issue",
        tenant="body",
        problems=_ISSUE_PROBLEMS,
        body_limits=LARGE_BODY,
        judge_refused=_judge_refused(route),
    )


def _recover(route: IssuanceRoute) -> Operation:
    return Operation(
        "code.recover",
        tenant="body",
        problems=_RECOVERY_PROBLEMS,
        body_limits=LARGE_BODY,
        judge_refused=_judge_refused(route, is_recovery=True),
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
    keyed: Annotated[KeyedRequest | None, Depends(_single)],
    request_id: RequestId,
    dry_run: DryRun = False,
) -> Response:
    """Issue a signed Code."""
    request = _issue_request(body, "single", 1, keyed)
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
    keyed: Annotated[KeyedRequest | None, Depends(_batch)],
    request_id: RequestId,
    dry_run: DryRun = False,
) -> Response:
    """Issue up to 100 signed Codes, all or none. They differ only in their ids and tokens."""
    request = _issue_request(body, "batch", body.count, keyed)
    return await _issue_or_try(ctx, scope, request, request_id, is_dry_run=dry_run)


@operations.add("POST", "/v1/codes/recover", _recover("single"), response_model=CodeIssued, example=issued_view(CODE))
async def recover_code(
    ctx: Ctx, scope: Tenant, body: CreateCode, keyed: Annotated[KeyedRequest, Depends(_earlier_single)]
) -> Response:
    """Return the response of an earlier issuance with this key and body, for up to 24 hours. Issues nothing."""
    request = _issue_request(body, "single", 1, keyed)
    return _json(await service.recover_issuance(ctx, scope, request), HTTPStatus.OK)


@operations.add(
    "POST",
    "/v1/codes/batch/recover",
    _recover("batch"),
    response_model=IssuedCodes,
    example=IssuedCodes(data=[issued_view(CODE)]),
)
async def recover_codes(
    ctx: Ctx, scope: Tenant, body: CreateCodes, keyed: Annotated[KeyedRequest, Depends(_earlier_batch)]
) -> Response:
    """Return the response of an earlier batch issuance with this key and body, for up to 24 hours. Issues nothing."""
    request = _issue_request(body, "batch", body.count, keyed)
    return _json(await service.recover_issuance(ctx, scope, request), HTTPStatus.OK)


def _issue_request(body: CreateCode, route: IssuanceRoute, count: int, keyed: KeyedRequest | None) -> IssueRequest:
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
            _refuse_key_of_dry_run(is_dry_run=True)
        return _verdict(await service.try_issuance(ctx, scope, request, request_id=request_id))
    issued: Issued = await service.issue_codes(ctx, scope, request, request_id=request_id)
    return _json(issued.response, HTTPStatus.CREATED, quota_headers(issued.quota))


def _refuse_key_of_dry_run(*, is_dry_run: bool) -> None:
    if is_dry_run:
        raise invalid("header", KEY_HEADER, "must be absent in a dry run")


def _is_dry_run(request: Request) -> bool:
    try:
        return _DRY_RUN.validate_python(request.query_params.get("dry_run", False))
    except ValidationError:
        return False


def _is_unreadable_intent(refusal: Refusal) -> bool:
    return isinstance(refusal, RequestValidationError) and isinstance(refine_problem(refusal), IntentNotCanonical)


def _verdict(outcome: service.DryRun) -> Response:
    view = Verdict(
        would_issue=outcome.problem_code is None,
        code=outcome.problem_code,
        quota_remaining=outcome.quota.remaining,
    )
    return _json(view.model_dump_json().encode(), HTTPStatus.OK)


def _json(body: bytes, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status_code=status, media_type="application/json", headers=headers)
