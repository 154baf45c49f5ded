"""The routes that issue Codes, and those that recall what was issued."""

from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, Final

from fastapi import APIRouter, Depends, Header, Query
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError, WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response

from soundmark.core.context import RequestContext
from soundmark.core.domain.receipt import KEY_PATTERN, IssuanceRoute
from soundmark.core.domain.scope import TenantScope
from soundmark.core.edge import Ctx, RequestId, TenantInBody, invalid, needs, problems, refined
from soundmark.core.features.codes import issuance
from soundmark.core.features.codes.issuance import Keyed
from soundmark.core.features.codes.issuing import Issued
from soundmark.core.features.codes.judgement import Issuance, quota_headers
from soundmark.core.features.codes.wire import (
    CreateCode,
    CreateCodes,
    IssuedCodes,
    Verdict,
    batch_body,
    issued_body,
)
from soundmark.core.problems import (
    AudienceUnavailable,
    CampaignArchived,
    CampaignNotFound,
    CampaignNotOpen,
    CodeIssueNotFound,
    IdempotencyConflict,
    IntegrationNotFound,
    IntegrationRevoked,
    IntentNotCanonical,
    ProjectNotFound,
    QuotaExceeded,
)
from soundmark.kit.bodies import LARGE_BODY, BodyLimits
from soundmark.kit.http import StrictRoute
from soundmark.wire.xr_code import CodeIssued

_KEY_HEADER: Final = "Idempotency-Key"
_ROUTES: Final[dict[str, IssuanceRoute]] = {
    "/v1/codes": "single",
    "/v1/codes/recover": "single",
    "/v1/codes/batch": "batch",
    "/v1/codes/batch/recover": "batch",
}
_QUOTA_HEADERS: Final[dict[str, Any]] = {
    name: {"schema": {"type": "string"}, "description": description, "example": example}
    for name, description, example in (
        ("RateLimit-Policy", "The monthly quota.", '"codes";q=100'),
        ("RateLimit", "What is left of it, and the seconds until it is whole again.", '"codes";r=88;t=864000'),
    )
}
_ISSUANCE: Final = problems(
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
) | {
    HTTPStatus.OK: {"model": Verdict, "description": "The verdict of a dry run."},
    HTTPStatus.CREATED: {"headers": _QUOTA_HEADERS},
}
_RECOVERY: Final = problems(ProjectNotFound, CodeIssueNotFound, IdempotencyConflict, IntentNotCanonical)

# Published, not judged here: whether it is a key is judged after whether the caller may issue for the project.
_KeyText = Annotated[str, WithJsonSchema({"type": "string", "pattern": KEY_PATTERN})]


def _one_key(request: Request) -> Keyed | None:
    """The one idempotency key of a request, and what it is the key of."""
    keys = request.headers.getlist(_KEY_HEADER)
    if len(keys) > 1:
        raise invalid("header", _KEY_HEADER, "must be given once")
    return Keyed(keys[0], request.state.json) if keys else None


async def _keyed(
    request: Request,
    idempotency_key: Annotated[  # noqa: ARG001 - published here, read as it stands in the request
        _KeyText | None,
        Header(
            alias=_KEY_HEADER,
            description="Makes it safe to repeat the request: for 24 hours it is answered as it was the first time.",
        ),
    ] = None,
) -> Keyed | None:
    return _one_key(request)


async def _certainly_keyed(
    request: Request,
    idempotency_key: Annotated[  # noqa: ARG001 - as above
        _KeyText, Header(alias=_KEY_HEADER, description="The key that the issuance had.")
    ],
) -> Keyed:
    keyed = _one_key(request)
    assert keyed is not None, "the header is required"
    return keyed


Key = Annotated[Keyed | None, Depends(_keyed)]
RequiredKey = Annotated[Keyed, Depends(_certainly_keyed)]
DryRun = Annotated[bool, Query(description="Only say whether it would be done. Takes no idempotency key.")]
_DRY_RUN: Final = TypeAdapter(bool)


class _Route(StrictRoute):
    """A `StrictRoute` that judges the idempotency key before the rest of the request.

    A body that is refused may be another request under a key that was used, and that is what its sender has to know.
    """

    body_limits: ClassVar[BodyLimits] = LARGE_BODY

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        route = _ROUTES[self.path]

        async def judged(request: Request) -> Response:
            try:
                return await handle(request)
            except (RequestValidationError, IntentNotCanonical) as refusal:
                answer = await _answer_in_spite(request, route, refusal)
                if answer is None:
                    raise
                return answer

        return judged


router = APIRouter(route_class=_Route, tags=["Codes"])


@router.post(
    "/v1/codes",
    status_code=HTTPStatus.CREATED,
    response_model=CodeIssued,
    responses=_ISSUANCE,
    openapi_extra=needs("code.issue"),
)
async def issue_code(  # noqa: PLR0913, PLR0917 - one argument for each part of the request
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInBody("code.issue"))],
    body: CreateCode,
    keyed: Key,
    request_id: RequestId,
    dry_run: DryRun = False,
) -> Response:
    """Issue a signed Code."""
    wanted = _wanted(body, "single", 1)
    if dry_run:
        return await _judged(ctx, scope, wanted, keyed, request_id)
    return _issued(await issuance.issue_codes(ctx, scope, wanted, keyed, issued_body, request_id=request_id))


@router.post(
    "/v1/codes/batch",
    status_code=HTTPStatus.CREATED,
    response_model=IssuedCodes,
    responses=_ISSUANCE,
    openapi_extra=needs("code.issue"),
)
async def issue_codes(  # noqa: PLR0913, PLR0917 - one argument for each part of the request
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInBody("code.issue"))],
    body: CreateCodes,
    keyed: Key,
    request_id: RequestId,
    dry_run: DryRun = False,
) -> Response:
    """Issue up to 100 signed Codes that differ in nothing but their ids and tokens: all of them, or none."""
    wanted = _wanted(body, "batch", body.count)
    if dry_run:
        return await _judged(ctx, scope, wanted, keyed, request_id)
    return _issued(await issuance.issue_codes(ctx, scope, wanted, keyed, batch_body, request_id=request_id))


@router.post("/v1/codes/recover", response_model=CodeIssued, responses=_RECOVERY, openapi_extra=needs("code.recover"))
async def recover_code(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInBody("code.recover"))],
    body: CreateCode,
    keyed: RequiredKey,
) -> Response:
    """Answer what an issuance with this key and this very body was answered, within 24 hours. Issues nothing."""
    answer = await issuance.recover_issuance(ctx, scope, "single", keyed, project_id=body.project_id)
    return _json(answer, HTTPStatus.OK)


@router.post(
    "/v1/codes/batch/recover", response_model=IssuedCodes, responses=_RECOVERY, openapi_extra=needs("code.recover")
)
async def recover_codes(
    ctx: Ctx,
    scope: Annotated[TenantScope, Depends(TenantInBody("code.recover"))],
    body: CreateCodes,
    keyed: RequiredKey,
) -> Response:
    """Answer what a batch issuance with this key and this very body was answered, within 24 hours. Issues nothing."""
    answer = await issuance.recover_issuance(ctx, scope, "batch", keyed, project_id=body.project_id)
    return _json(answer, HTTPStatus.OK)


def _wanted(body: CreateCode, route: IssuanceRoute, count: int) -> Issuance:
    return Issuance(
        project_id=body.project_id,
        campaign_id=body.campaign_id,
        issuer=body.issuer,
        expires_at=body.expires_at,
        intent={"type": body.intent.type, "action": body.intent.action, "resource": body.intent.resource},
        integration_id=body.audience.integration_id if body.audience is not None else None,
        route=route,
        count=count,
    )


async def _judged(
    ctx: RequestContext, scope: TenantScope, wanted: Issuance, keyed: Keyed | None, request_id: str
) -> Response:
    if keyed is not None:
        raise _no_dry_key()
    return _verdict(await issuance.judge_issuance(ctx, scope, wanted, request_id=request_id))


async def _answer_in_spite(
    request: Request, route: IssuanceRoute, refusal: RequestValidationError | IntentNotCanonical
) -> Response | None:
    """Return what takes precedence over the refusal of the rest of the request; None where nothing does.

    The project is judged first, then the key.

    Raises: ProjectNotFound; IdempotencyConflict, and what else recalling an issuance raises.
    """
    scope: TenantScope | None = getattr(request.state, "scope", None)
    if scope is None:
        return None
    ctx: RequestContext = request.app.state.context
    project_id = request.state.json.get("project_id")
    if isinstance(project_id, str):
        await issuance.require_project(ctx, scope, project_id)
    keyed = _one_key(request)
    is_recovery = request.url.path.endswith("/recover")
    if keyed is None and is_recovery:
        raise invalid("header", _KEY_HEADER, "Field required")
    is_dry = not is_recovery and _is_dry(request)
    if keyed is not None and is_dry:
        raise _no_dry_key()
    if keyed is not None:
        answer = await issuance.recall_issuance(ctx, scope, route, keyed, project_id=project_id)
        if _is_about_query(refusal):
            return None  # It is not the request that was answered, whatever its body says.
        return None if answer is None else _json(answer, HTTPStatus.OK if is_recovery else HTTPStatus.CREATED)
    if is_dry and isinstance(refusal, RequestValidationError) and isinstance(refined(refusal), IntentNotCanonical):
        return _verdict(await issuance.judge_uncanonical(ctx, scope, project_id))
    return None


def _is_about_query(refusal: RequestValidationError | IntentNotCanonical) -> bool:
    return isinstance(refusal, RequestValidationError) and any(fault["loc"][0] == "query" for fault in refusal.errors())


def _no_dry_key() -> RequestValidationError:
    return invalid("header", _KEY_HEADER, "belongs to what is carried out, not to a dry run")


def _is_dry(request: Request) -> bool:
    try:
        return _DRY_RUN.validate_python(request.query_params.get("dry_run", False))
    except ValidationError:
        return False


def _issued(issued: Issued) -> Response:
    return _json(issued.answer, HTTPStatus.CREATED, quota_headers(issued.quota))


def _verdict(verdict: issuance.Verdict) -> Response:
    view = Verdict(
        would_issue=verdict.refusal is None,
        code=verdict.refusal.code if verdict.refusal is not None else None,
        quota_remaining=verdict.quota.remaining,
    )
    return _json(view.model_dump_json().encode(), HTTPStatus.OK)


def _json(body: bytes, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status_code=status, media_type="application/json", headers=headers)
