"""Commands of issuance: issue Codes, try it without issuing, and recover the response of an issuance."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.core.context import RequestContext
from soundmark.core.domain.billing.subscription import list_quotas
from soundmark.core.domain.codes.issue_request import IssueRequest
from soundmark.core.domain.codes.quota import Quota
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.codes.issuance.issue_group import IssueResult, QueuedRequest
from soundmark.core.features.codes.issuance.preconditions import (
    IntegrationState,
    canonicalize_intent,
    require_allowed_link,
    require_issuable,
)
from soundmark.core.problems import AudienceUnavailable, CodeIssueNotFound, IntentNotCanonical
from soundmark.core.steps.cells import read_audience
from soundmark.core.steps.idempotency import find_answer
from soundmark.core.steps.tenancy import (
    require_active_organization,
    require_open_organization,
    require_open_project,
    require_project,
    require_reach,
    require_unsuspended,
)
from soundmark.core.store.billing import subscriptions
from soundmark.core.store.codes import campaigns, code_entitlements, code_usage
from soundmark.core.store.tenancy import organizations, projects
from soundmark.kit.http.responses.problems import Problem
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.months import month_of
from soundmark.kit.tracing.context import find_traceparent
from soundmark.wire.private.problems import IntegrationNotFound


@dataclass(frozen=True, slots=True)
class DryRun:
    """The outcome of a dry run: the code of the problem that issuing would raise, if any, and the quota."""

    problem_code: str | None
    quota: Quota


async def issue_codes(
    ctx: RequestContext, scope: TenantScope, request: IssueRequest, *, request_id: str
) -> IssueResult:
    """Issue the requested Codes in one transaction: all of them, or none.

    The Codes, their count of the day, the receipt of the idempotency key and the audit entry are one commit. A request
    that repeats one of the last 24 hours with its key changes nothing and gets the same response.

    1. Make the intent canonical.
    2. If the Codes are to be measured, ask Audience about the integration, outside any transaction.
    3. Put the request into its organisation's queue, which issues several requests in one transaction (docs/adr/0009).

    Raises: ProjectNotFound; ValidationFailed for a malformed key, and for an expiry that is not in the future when the
        Codes would be written; IdempotencyConflict; IntentNotCanonical; CampaignNotFound, CampaignArchived,
        CampaignNotOpen; IntegrationNotFound, IntegrationRevoked, AudienceUnavailable; QuotaExceeded.
    Source: API v1, "Codes", "Idempotency rules" and "Issuance ordering".
    """
    require_reach(scope, request.project_id)
    try:
        intent = canonicalize_intent(request.intent)
    except IntentNotCanonical:
        await find_answer(ctx, scope, request.project_id, request.keyed)
        raise
    integration = await _check_integration_once(ctx, scope, request, request_id)
    queued = QueuedRequest(scope, request, intent, integration, find_traceparent())
    issued: IssueResult = await ctx.issuances.run(queued, queue=scope.organization_id, size=request.count)
    return issued


async def try_issuance(ctx: RequestContext, scope: TenantScope, request: IssueRequest, *, request_id: str) -> DryRun:
    """Find out what `issue_codes` would do now, without issuing.

    Raises: ProjectNotFound; ValidationFailed for an intent that leads to another host than the project allows.
    """
    require_reach(scope, request.project_id)
    integration = await _check_integration(ctx, scope, request, request_id)
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        project = await require_project(tx, scope, request.project_id)
        allowed = await projects.find_allowed_hosts(tx, scope, request.project_id)
        standing = await organizations.find_standing(tx, scope.organization_id)
        quota = await _read_quota(tx, scope, ctx.clock.now())
        campaign_id = request.campaign_id or ""
        campaign = await campaigns.find(tx, scope, campaign_id)
    try:
        require_open_organization(is_open=standing is not None and standing.is_open)
        require_open_project(is_open=project.deletion_requested_at is None)
        require_unsuspended(standing)
    except Problem as problem:
        return DryRun(problem.code, quota)
    require_allowed_link(request.intent, None if allowed is None else allowed.hosts)
    try:
        canonicalize_intent(request.intent)
        require_issuable(request, campaign, integration, quota)
    except Problem as problem:
        return DryRun(problem.code, quota)
    return DryRun(None, quota)


async def try_unreadable_intent(ctx: RequestContext, scope: TenantScope) -> DryRun:
    """Find out what `issue_codes` would do with an intent that contains a number which cannot be represented."""
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        standing = await organizations.find_standing(tx, scope.organization_id)
        quota = await _read_quota(tx, scope, ctx.clock.now())
    try:
        require_active_organization(standing)
    except Problem as problem:
        return DryRun(problem.code, quota)
    return DryRun(IntentNotCanonical.code, quota)


async def recover_issuance(ctx: RequestContext, scope: TenantScope, request: IssueRequest) -> bytes:
    """Return the response of an issuance of the last 24 hours, without issuing or counting anything.

    Raises: CodeIssueNotFound; IntentNotCanonical, and what `find_answer` raises.
    Source: API v1, "Codes", recover.
    """
    result = await find_answer(ctx, scope, request.project_id, request.keyed)
    canonicalize_intent(request.intent)
    if result is None:
        raise CodeIssueNotFound
    return result


async def _check_integration_once(
    ctx: RequestContext, scope: TenantScope, request: IssueRequest, request_id: str
) -> IntegrationState:
    """Do the same as `_check_integration`, but do not call Audience for a repeated request."""
    is_keyed = request.integration_id is not None and request.keyed is not None
    if is_keyed and await find_answer(ctx, scope, request.project_id, request.keyed) is not None:
        return "unknown"
    return await _check_integration(ctx, scope, request, request_id)


async def _check_integration(
    ctx: RequestContext, scope: TenantScope, request: IssueRequest, request_id: str
) -> IntegrationState:
    if request.integration_id is None:
        return "none_named"
    try:
        audience = await read_audience(ctx, scope.organization_id)
        if audience is None:
            return "missing"
        integration = await audience.get_integration(
            scope.organization_id, request.project_id, request.integration_id, request_id=request_id
        )
    except AudienceUnavailable:
        return "unknown"
    except IntegrationNotFound:
        return "missing"
    return "usable" if integration.revoked_at is None else "revoked"


async def _read_quota(tx: Tx, scope: TenantScope, now: datetime) -> Quota:
    entitlement = await code_entitlements.get(tx, scope.organization_id)
    live = await subscriptions.list_live_quotas(tx, scope.organization_id, None)
    issued_count = await code_usage.count_issued(tx, scope.organization_id, month_of(now))
    return Quota(entitlement.monthly_quota(now, subscribed=list_quotas(live, now)), issued_count, now)
