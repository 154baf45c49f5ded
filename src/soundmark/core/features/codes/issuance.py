"""Issuing Codes: one, many, or only asking whether it would be done; and recalling what was."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from soundmark.core.context import Context
from soundmark.core.domain.campaign import Campaign
from soundmark.core.domain.code import TOKEN_PREFIX, TOKEN_RANDOM_CHARS, Code, Facts, signed_code
from soundmark.core.domain.quota import Quota, day_of, month_of
from soundmark.core.domain.receipt import Attempt, IssuanceRoute, Receipt, attempt_of
from soundmark.core.domain.scope import TenantScope
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
from soundmark.core.steps import audit
from soundmark.core.steps.authority import hold_authority
from soundmark.core.store import (
    broadcasts,
    campaigns,
    code_entitlements,
    code_usage,
    codes,
    issuance_receipts,
    projects,
)
from soundmark.kit.canonical import NotCanonical, canonicalize
from soundmark.kit.ids import may_be_id, mint
from soundmark.kit.postgres import Tx
from soundmark.kit.problems import FieldError, Location, Problem, ValidationFailed

BATCH_MAX: Final = 100  # API v1, "Limits".


@dataclass(frozen=True, slots=True)
class Issuance:
    """What a caller asks to be issued: one Code, or a batch of `count`. `integration_id` None: no Audience."""

    project_id: str
    campaign_id: str | None
    issuer: str
    expires_at: datetime
    intent: Mapping[str, Any]
    integration_id: str | None
    route: IssuanceRoute = "single"
    count: int = 1


@dataclass(frozen=True, slots=True)
class Keyed:
    """The idempotency key of a request, and the request as it was parsed."""

    key: str
    request: Any


@dataclass(frozen=True, slots=True)
class Issued:
    """The answer to an issuance, the very bytes that every repetition is answered too, and what is left to issue."""

    answer: bytes
    quota: Quota


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an issuance would be carried out now; `refusal` says why not."""

    refusal: Problem | None
    quota: Quota


async def issue_codes(  # noqa: PLR0913 - what, for whom, and how it is answered
    ctx: Context,
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
    against = None
    if wanted.integration_id is not None:
        is_new = keyed is None or not await _is_remembered(ctx, scope, wanted, keyed)
        against = await _against_integration(ctx, scope, wanted, request_id) if is_new else None
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        found = await _hold(ctx, tx, scope, wanted, keyed)
        if found.answer is not None:
            return Issued(found.answer, found.quota)
        _judge(wanted, found.campaign, found.quota, against)
        issued = _sign(ctx, scope, wanted, intent, found.quota.at)
        answer = write(issued)
        async with tx.ending():
            await _record(ctx, tx, scope, wanted.route, issued)
            if found.attempt is not None:
                await issuance_receipts.upsert(
                    tx, scope, found.attempt, project_id=wanted.project_id, answer=answer, now=found.quota.at
                )
    return Issued(answer, found.quota.after(wanted.count))


async def judge_issuance(ctx: Context, scope: TenantScope, wanted: Issuance, *, request_id: str) -> Verdict:
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
        quota = await _quota(tx, scope, await code_entitlements.find_monthly_quota(tx, scope), now)
        campaign_id = wanted.campaign_id or ""
        campaign = await campaigns.find(tx, scope, campaign_id) if may_be_id(campaign_id) else None
    try:
        canonical_intent(wanted.intent)
        _judge(wanted, _of_project(campaign, wanted.project_id), quota, against)
    except Problem as refusal:
        return Verdict(refusal, quota)
    return Verdict(None, quota)


async def judge_uncanonical(ctx: Context, scope: TenantScope, project_id: Any) -> Verdict:
    """`judge_issuance` of an intent that holds what cannot even be read, whatever stands beside it.

    Raises: ProjectNotFound.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        if isinstance(project_id, str) and not await _may_use(tx, scope, project_id):
            raise ProjectNotFound
        monthly_quota = await code_entitlements.find_monthly_quota(tx, scope)
        return Verdict(IntentNotCanonical(), await _quota(tx, scope, monthly_quota, ctx.clock.now()))


async def recall_issuance(
    ctx: Context, scope: TenantScope, route: IssuanceRoute, keyed: Keyed, *, project_id: Any
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
            raise _refused("header", "/Idempotency-Key", "must be 16 to 128 characters of A-Za-z0-9._~-")
        return _recalled(await issuance_receipts.find(tx, scope, attempt), attempt, ctx.clock.now())


async def recover_issuance(
    ctx: Context, scope: TenantScope, route: IssuanceRoute, keyed: Keyed, *, project_id: str
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
        raise IntentNotCanonical(f"The intent {error}.") from None


def _may_be_reached(scope: TenantScope, project_id: str) -> bool:
    return may_be_id(project_id) and scope.reaches(project_id)


async def _may_use(tx: Tx, scope: TenantScope, project_id: str) -> bool:
    return _may_be_reached(scope, project_id) and await projects.find(tx, scope, project_id) is not None


@dataclass(frozen=True, slots=True)
class _Found:
    """What an issuance rests on, nothing of which changes until its transaction ends. `answer`: it was done before."""

    attempt: Attempt | None
    answer: bytes | None
    campaign: Campaign | None
    quota: Quota


async def _hold(ctx: Context, tx: Tx, scope: TenantScope, wanted: Issuance, keyed: Keyed | None) -> _Found:
    """What there is, held.

    Raises: what `hold_authority` raises; ProjectNotFound; ValidationFailed for what is no key; IdempotencyConflict.
    """
    month = month_of(ctx.clock.now())
    attempt = None if keyed is None else attempt_of(keyed.key, wanted.route, keyed.request)
    campaign_id = wanted.campaign_id if wanted.campaign_id is not None and may_be_id(wanted.campaign_id) else None
    async with tx.together() as ask:
        ask(hold_authority(tx, scope))
        has_project = ask(projects.hold(tx, scope, wanted.project_id))
        # One queue for each organisation: from here on nobody else issues for it. What is read behind this is read
        # inside the queue, so of two requests with one key the second finds what the first was answered.
        monthly_quota = ask(code_entitlements.lock_monthly_quota(tx, scope))
        receipt = None if attempt is None else ask(issuance_receipts.find(tx, scope, attempt))
        campaign = None if campaign_id is None else ask(campaigns.hold(tx, scope, campaign_id))
        issued_count = ask(code_usage.count_issued(tx, scope, month))
    if not has_project.result():
        raise ProjectNotFound
    if keyed is not None and attempt is None:
        raise _refused("header", "/Idempotency-Key", "must be 16 to 128 characters of A-Za-z0-9._~-")
    now = ctx.clock.now()  # Read after the last wait: schedule, expiry and month are judged when we act.
    is_same_month = month_of(now) == month
    count = issued_count.result() if is_same_month else await code_usage.count_issued(tx, scope, month_of(now))
    answer = None if attempt is None or receipt is None else _recalled(receipt.result(), attempt, now)
    held = None if campaign is None else campaign.result()
    return _Found(attempt, answer, _of_project(held, wanted.project_id), Quota(monthly_quota.result(), count, now))


async def _is_remembered(ctx: Context, scope: TenantScope, wanted: Issuance, keyed: Keyed) -> bool:
    """Whether the request was answered before, so that nothing is asked of Audience for it.

    Raises: what `recall_issuance` raises.
    """
    answer = await recall_issuance(ctx, scope, wanted.route, keyed, project_id=wanted.project_id)
    return answer is not None


async def _against_integration(ctx: Context, scope: TenantScope, wanted: Issuance, request_id: str) -> Problem | None:
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


def _of_project(campaign: Campaign | None, project_id: str) -> Campaign | None:
    return campaign if campaign is not None and campaign.project_id == project_id else None


def _recalled(receipt: Receipt | None, attempt: Attempt, now: datetime) -> bytes | None:
    """The answer that is remembered for the attempt.

    Raises: IdempotencyConflict.
    """
    if receipt is None or not receipt.is_kept(now):
        return None
    if not receipt.belongs_to(attempt):
        raise IdempotencyConflict
    return receipt.answer


async def _quota(tx: Tx, scope: TenantScope, monthly_quota: int, now: datetime) -> Quota:
    return Quota(monthly_quota, await code_usage.count_issued(tx, scope, month_of(now)), now)


def _judge(wanted: Issuance, campaign: Campaign | None, quota: Quota, against: Problem | None) -> None:
    """Nothing stands against the issuance at the moment of `quota`; `against` is what Audience said."""
    if wanted.campaign_id is not None:
        if campaign is None:
            raise CampaignNotFound
        if campaign.status == "archived":
            raise CampaignArchived
        if not campaign.is_open(quota.at):
            raise CampaignNotOpen
    if against is not None:
        raise against
    if wanted.expires_at <= quota.at:
        raise _refused("body", "/expires_at", "must be in the future")
    if wanted.count > quota.remaining:
        seconds_left = quota.month.seconds_left(quota.at)
        raise QuotaExceeded(headers={"Retry-After": str(seconds_left), **quota_headers(quota)})


def _refused(location: Location, pointer: str, message: str) -> ValidationFailed:
    # A new one each time: an exception keeps every frame that it passed, and what was asked in it.
    return ValidationFailed(errors=(FieldError(location, pointer, message),))


def quota_headers(quota: Quota) -> dict[str, str]:
    """What an issuance says of the quota. Source: contract, section 3; draft-ietf-httpapi-ratelimit-headers."""
    return {
        "RateLimit-Policy": f'"codes";q={quota.monthly_quota}',
        "RateLimit": f'"codes";r={quota.remaining};t={quota.month.seconds_left(quota.at)}',
    }


def _sign(ctx: Context, scope: TenantScope, wanted: Issuance, intent: bytes, now: datetime) -> list[Code]:
    key = ctx.custody.keyring.active
    facts = Facts(
        organization_id=scope.organization_id,
        project_id=wanted.project_id,
        campaign_id=wanted.campaign_id,
        issuer=wanted.issuer,
        issued_at=now,
        expires_at=wanted.expires_at,
        intent=intent,
        audience_integration_id=wanted.integration_id,
        key_id=key.key_id,
    )
    head = facts.head()
    return [
        signed_code(
            facts,
            key,
            xr_id=mint(ctx.entropy, "xr_"),
            broadcast_token=mint(ctx.entropy, TOKEN_PREFIX, TOKEN_RANDOM_CHARS),
            head=head,
        )
        for _ in range(wanted.count)
    ]


async def _record(ctx: Context, tx: Tx, scope: TenantScope, route: IssuanceRoute, issued: Sequence[Code]) -> None:
    first = issued[0]
    await broadcasts.insert(tx, issued)
    await codes.insert(tx, scope, issued)
    await code_usage.add_issued(tx, scope, day_of(first.issued_at), len(issued))
    await audit.record(
        tx,
        scope,
        ctx.entropy,
        action="code.issued" if route == "single" else "code.batch_issued",
        now=first.issued_at,
        project_id=first.project_id,
        metadata={"xr_id": first.xr_id} if route == "single" else {"xr_ids": [code.xr_id for code in issued]},
    )
