"""Issuing Codes: one, many, or only asking whether it would be done; and recalling what was."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from soundmark.core.context import RequestContext
from soundmark.core.domain.code import Code
from soundmark.core.domain.quota import Quota
from soundmark.core.domain.receipt import IssuanceRoute, attempt_of
from soundmark.core.domain.scope import TenantScope
from soundmark.core.features.codes.issuing import Asked, Issued
from soundmark.core.features.codes.judgement import Issuance, judge, no_key, recalled
from soundmark.core.problems import (
    AudienceUnavailable,
    CodeIssueNotFound,
    IntegrationNotFound,
    IntegrationRevoked,
    IntentNotCanonical,
    ProjectNotFound,
)
from soundmark.core.store import campaigns, code_entitlements, code_usage, issuance_receipts, projects
from soundmark.kit.canonical import NotCanonical, canonicalize
from soundmark.kit.ids import may_be_id
from soundmark.kit.months import month_of
from soundmark.kit.postgres import Tx
from soundmark.kit.problems import FieldError, Problem

BATCH_MAX: Final = 100  # API v1, "Limits".


@dataclass(frozen=True, slots=True)
class Keyed:
    """The idempotency key of a request, and the request as it was parsed."""

    key: str
    request: Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an issuance would be carried out now; `refusal` says why not."""

    refusal: Problem | None
    quota: Quota


async def issue_codes(  # noqa: PLR0913 - what, for whom, and how it is answered
    ctx: RequestContext,
    scope: TenantScope,
    wanted: Issuance,
    keyed: Keyed | None,
    write: Callable[[Sequence[Code]], bytes],
    *,
    request_id: str,
) -> Issued:
    """`wanted.count` signed Codes exist and their tokens can be resolved, all from one commit on, or none ever.

    The Codes, their count of the day, the receipt of the idempotency key and the audit entry are one commit. `write`
    makes the answer. With a key that succeeded within 24 hours nothing is done, and its answer is given again.

    1. Where the Codes are to be measured, Audience is asked for the integration, outside any transaction; a repetition
       is answered before that.
    2. They are issued, unless Audience, or anything else, stands against it.

    Raises: IntentNotCanonical; ProjectNotFound; ValidationFailed for what is no key, and for an expiry that is not in
        the future when the Codes would be written; IdempotencyConflict; CampaignNotFound, CampaignArchived,
        CampaignNotOpen; IntegrationNotFound, IntegrationRevoked, AudienceUnavailable; QuotaExceeded.
    Source: API v1, "Codes", "Idempotency rules" and "Issuance ordering".
    """
    intent = canonical_intent(wanted.intent)
    if not _may_be_reached(scope, wanted.project_id):
        raise ProjectNotFound
    attempt = None if keyed is None else attempt_of(keyed.key, wanted.route, keyed.request)
    asked = Asked(
        scope,
        wanted,
        intent,
        attempt,
        has_bad_key=keyed is not None and attempt is None,
        against=await _against_new(ctx, scope, wanted, keyed, request_id),
        write=write,
    )
    # The issuances of one organisation form one queue anyway: docs/adr/0009.
    issued: Issued = await ctx.issuances.run(asked, queue=scope.organization_id, size=wanted.count)
    return issued


async def judge_issuance(ctx: RequestContext, scope: TenantScope, wanted: Issuance, *, request_id: str) -> Verdict:
    """What `issue_codes` would do at this moment, without doing any of it.

    Raises: ProjectNotFound.
    """
    if not _may_be_reached(scope, wanted.project_id):
        raise ProjectNotFound
    against = await _against_integration(ctx, scope, wanted, request_id)
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        if not await _may_use(tx, scope, wanted.project_id):
            raise ProjectNotFound
        now = ctx.clock.now()
        quota = await _quota(tx, scope, now)
        campaign_id = wanted.campaign_id or ""
        campaign = await campaigns.find(tx, scope, campaign_id) if may_be_id(campaign_id) else None
    try:
        canonical_intent(wanted.intent)
        judge(wanted, campaign, quota, against)
    except Problem as refusal:
        return Verdict(refusal, quota)
    return Verdict(None, quota)


async def require_project(ctx: RequestContext, scope: TenantScope, project_id: str) -> None:
    """Judge whether the caller may issue for the project.

    Raises: ProjectNotFound.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        if not await _may_use(tx, scope, project_id):
            raise ProjectNotFound


async def judge_uncanonical(ctx: RequestContext, scope: TenantScope, project_id: Any) -> Verdict:
    """`judge_issuance` of an intent that holds what cannot even be read, whatever stands beside it.

    Raises: ProjectNotFound.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        if isinstance(project_id, str) and not await _may_use(tx, scope, project_id):
            raise ProjectNotFound
        return Verdict(IntentNotCanonical(), await _quota(tx, scope, ctx.clock.now()))


async def recall_issuance(
    ctx: RequestContext, scope: TenantScope, route: IssuanceRoute, keyed: Keyed, *, project_id: Any
) -> bytes | None:
    """What the same request with the same key was answered within 24 hours; None where no such answer is remembered.

    `project_id` is whatever the request holds in its place.

    Raises: ProjectNotFound; ValidationFailed for what is no key; IdempotencyConflict.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        if isinstance(project_id, str) and not await _may_use(tx, scope, project_id):
            raise ProjectNotFound
        attempt = attempt_of(keyed.key, route, keyed.request)
        if attempt is None:
            raise no_key()
        receipts = await issuance_receipts.find(tx, scope.organization_id, [attempt.key_digest])
        return recalled(receipts.get(attempt.key_digest), attempt, ctx.clock.now())


async def recover_issuance(
    ctx: RequestContext, scope: TenantScope, route: IssuanceRoute, keyed: Keyed, *, project_id: str
) -> bytes:
    """The answer of an issuance that was carried out, for whoever lost it. Nothing is issued or counted.

    Raises: CodeIssueNotFound, and what `recall_issuance` raises.
    Source: API v1, "Codes", recover.
    """
    answer = await recall_issuance(ctx, scope, route, keyed, project_id=project_id)
    if answer is None:
        raise CodeIssueNotFound
    return answer


def canonical_intent(intent: Mapping[str, Any]) -> bytes:
    """The canonical bytes of an intent.

    Raises: IntentNotCanonical.
    """
    try:
        return canonicalize(intent)
    except NotCanonical as error:
        raise IntentNotCanonical(f"The intent {error}.", errors=(FieldError("body", "/intent", str(error)),)) from None


def _may_be_reached(scope: TenantScope, project_id: str) -> bool:
    return may_be_id(project_id) and scope.reaches(project_id)


async def _may_use(tx: Tx, scope: TenantScope, project_id: str) -> bool:
    return _may_be_reached(scope, project_id) and await projects.find(tx, scope, project_id) is not None


async def _against_new(
    ctx: RequestContext, scope: TenantScope, wanted: Issuance, keyed: Keyed | None, request_id: str
) -> Problem | None:
    """`_against_integration` of what was not answered before; for what was, nothing is asked of Audience.

    Raises: what `recall_issuance` raises.
    """
    is_remembered = (
        wanted.integration_id is not None
        and keyed is not None
        and await recall_issuance(ctx, scope, wanted.route, keyed, project_id=wanted.project_id) is not None
    )
    # Should the answer be forgotten before it is given again, nothing is issued that Audience was not asked about.
    return AudienceUnavailable() if is_remembered else await _against_integration(ctx, scope, wanted, request_id)


async def _against_integration(
    ctx: RequestContext, scope: TenantScope, wanted: Issuance, request_id: str
) -> Problem | None:
    """What stands against measuring with the integration, in the eyes of Audience; None where nothing does."""
    if wanted.integration_id is None:
        return None
    try:
        integration = await ctx.audience.get_integration(
            scope.organization_id, wanted.project_id, wanted.integration_id, request_id=request_id
        )
    except (AudienceUnavailable, IntegrationNotFound) as problem:
        return problem
    return IntegrationRevoked() if integration.revoked_at is not None else None


async def _quota(tx: Tx, scope: TenantScope, now: datetime) -> Quota:
    entitlement = await code_entitlements.get(tx, scope.organization_id)
    issued_count = await code_usage.count_issued(tx, scope.organization_id, month_of(now))
    return Quota(entitlement.monthly_quota(now), issued_count, now)
