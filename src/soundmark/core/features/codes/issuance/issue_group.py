"""Issuing the queued requests of one organisation together, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from soundmark.core.context import RequestContext
from soundmark.core.domain.billing.subscription import list_quotas
from soundmark.core.domain.codes.address import address_of
from soundmark.core.domain.codes.campaign import Campaign
from soundmark.core.domain.codes.code import TOKEN_PREFIX, TOKEN_RANDOM_CHARS, Code, Facts, sign_code
from soundmark.core.domain.codes.issue_request import IssueRequest
from soundmark.core.domain.codes.quota import Quota
from soundmark.core.domain.codes.receipt import Receipt
from soundmark.core.domain.log.entry import commit_issued
from soundmark.core.domain.tenancy.audit import AuditEntry
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.act import ACT_PREFIX
from soundmark.core.features.codes.issuance.preconditions import (
    IntegrationState,
    require_allowed_link,
    require_issuable,
)
from soundmark.core.features.codes.issuance.wire import render_response
from soundmark.core.problems import ProjectNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.idempotency import find_result
from soundmark.core.steps.tenancy import (
    Authority,
    find_authority,
    require_authority,
    require_open_organization,
    require_open_project,
    require_unsuspended,
)
from soundmark.core.store.billing import subscriptions
from soundmark.core.store.codes import (
    campaigns,
    code_entitlements,
    code_usage,
    codes,
    issuance_receipts,
    quota_thresholds,
)
from soundmark.core.store.tenancy import organizations, projects
from soundmark.core.store.tenancy.organizations import Standing
from soundmark.core.store.tenancy.projects import HeldProject
from soundmark.kit.http.responses.problems import Problem
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.text.ids import mint
from soundmark.kit.text.months import day_of, month_of


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """One request in an organisation's queue. `intent` is canonical; `integration` is its state in Audience.

    `traceparent` is its place in a trace, which the transaction of many requests has not.
    """

    scope: TenantScope
    request: IssueRequest
    intent: bytes
    integration: IntegrationState
    traceparent: str | None


@dataclass(frozen=True, slots=True)
class IssueResult:
    """The response to an issuance, as the bytes that a repeated request also gets, and the quota after it."""

    response: bytes
    quota: Quota


async def issue_group(ctx: RequestContext, queued: Sequence[QueuedRequest]) -> list[IssueResult | Problem]:
    """Judge the requests of one organisation in this order, and issue those that are allowed, in one commit.

    Return the outcomes in the same order. A refused request changes nothing and does not affect the others.
    """
    organization_id = queued[0].scope.organization_id
    async with ctx.pipelined.transaction(tenant=organization_id) as tx:
        evaluation = _GroupEvaluation(ctx, await _hold_state(ctx, tx, organization_id, queued))
        outcomes = [evaluation.judge(each) for each in queued]
        if evaluation.codes:
            async with tx.ending():
                await codes.insert(tx, evaluation.codes, evaluation.addresses, b"".join(evaluation.commitments))
                await code_usage.insert_or_add(tx, organization_id, day_of(evaluation.quota.at), len(evaluation.codes))
                await audit.record_all(tx, evaluation.entries)
                if reached := evaluation.quota.list_reached():
                    act_id = mint(ctx.entropy, ACT_PREFIX)
                    await quota_thresholds.insert_reached(
                        tx,
                        organization_id,
                        evaluation.quota,
                        reached,
                        act_id=act_id,
                        traceparent=evaluation.entries[-1].traceparent,
                        now=evaluation.quota.at,
                    )
                if evaluation.new_receipts:
                    await issuance_receipts.insert_or_update(tx, organization_id, evaluation.new_receipts)
    return outcomes


@dataclass(frozen=True, slots=True)
class _HeldState:
    """The rows that the requests depend on, held so that none of them changes until the transaction ends."""

    authorities: Mapping[TenantScope, Authority]
    standing: Standing | None
    projects: Mapping[str, HeldProject]
    receipts: Mapping[bytes, Receipt]
    campaigns: Mapping[str, Campaign]
    quota: Quota


async def _hold_state(
    ctx: RequestContext, tx: PipelinedTx, organization_id: str, queued: Sequence[QueuedRequest]
) -> _HeldState:
    """Lock and read what the requests depend on. Lock order: docs/locks.md."""
    month = month_of(ctx.clock.now())
    requests = [each.request for each in queued]
    project_ids = {request.project_id for request in requests}
    key_digests = {request.keyed.key_digest for request in requests if request.keyed is not None}
    campaign_ids = {request.campaign_id for request in requests if request.campaign_id is not None}
    async with tx.pipeline() as send:
        authorities = {scope: send(find_authority(tx, scope)) for scope in dict.fromkeys(each.scope for each in queued)}
        standing = send(organizations.hold_standing(tx, organization_id))
        held_projects = send(projects.hold_open_many(tx, organization_id, list(project_ids)))
        # Every other issuance of the organisation waits here. What is read from here on is current: of two requests
        # with one key, the second finds the receipt of the first.
        entitlement = send(code_entitlements.lock(tx, organization_id))
        receipts = send(issuance_receipts.find(tx, organization_id, list(key_digests))) if key_digests else None
        held_campaigns = send(campaigns.hold_many(tx, organization_id, list(campaign_ids))) if campaign_ids else None
        issued_count = send(code_usage.count_issued(tx, organization_id, month))
        live_quotas = send(subscriptions.list_live_quotas(tx, organization_id, None))
    now = ctx.clock.now()  # Read after the last wait: schedule, expiry, quota and month are judged now.
    count = issued_count.result()
    if month_of(now) != month:
        count = await code_usage.count_issued(tx, organization_id, month_of(now))
    subscribed = list_quotas(live_quotas.result(), now)
    return _HeldState(
        authorities={scope: authority.result() for scope, authority in authorities.items()},
        standing=standing.result(),
        projects=held_projects.result(),
        receipts=receipts.result() if receipts is not None else {},
        campaigns=held_campaigns.result() if held_campaigns is not None else {},
        quota=Quota(entitlement.result().monthly_quota(now, subscribed=subscribed), count, now),
    )


class _GroupEvaluation:
    """Judges requests one after the other, each as if the earlier ones were done, and collects the rows to write."""

    def __init__(self, ctx: RequestContext, held: _HeldState) -> None:
        self._ctx: Final = ctx
        self._held: Final = held
        self._receipts: Final = dict(held.receipts)
        self.quota = held.quota
        self.codes: Final[list[Code]] = []
        self.addresses: Final[list[bytes]] = []
        self.commitments: Final[list[bytes]] = []
        self.entries: Final[list[AuditEntry]] = []
        self.new_receipts: Final[list[Receipt]] = []

    def judge(self, queued: QueuedRequest) -> IssueResult | Problem:
        """Return the outcome of one request."""
        try:
            return self._issue(queued)
        except Problem as problem:
            return problem

    def _issue(self, queued: QueuedRequest) -> IssueResult:
        request, now = queued.request, self.quota.at
        require_authority(queued.scope, self._held.authorities[queued.scope])
        project = self._held.projects.get(request.project_id)
        if project is None:
            raise ProjectNotFound
        result = find_result(self._receipts, request.keyed, now)
        if result is not None:
            return IssueResult(result, self.quota)
        standing = self._held.standing
        require_open_organization(is_open=standing is not None and standing.is_open)
        require_open_project(is_open=project.is_open)
        require_unsuspended(standing)
        require_allowed_link(request.intent, project.allowed_hosts)
        campaign = self._held.campaigns.get(request.campaign_id or "")
        require_issuable(request, campaign, queued.integration, self.quota)
        issued = self._sign(queued)
        response = render_response(issued, request.route)
        self.codes.extend(issued)
        self.addresses.extend([address_of(request.intent["resource"])] * len(issued))
        self.commitments.append(commit_issued(issued))
        self.entries.append(self._audit_entry(queued, issued))
        self._keep_receipt(request, response)
        self.quota = self.quota.after(len(issued))
        return IssueResult(response, self.quota)

    def _sign(self, queued: QueuedRequest) -> list[Code]:
        key, entropy, request = self._ctx.live_keyring.keyring.active, self._ctx.entropy, queued.request
        facts = Facts(
            organization_id=queued.scope.organization_id,
            project_id=request.project_id,
            campaign_id=request.campaign_id,
            issuer=request.issuer,
            issued_at=self.quota.at,
            expires_at=request.expires_at,
            intent=queued.intent,
            audience_integration_id=request.integration_id,
            key_id=key.key_id,
        )
        head = facts.head()
        return [
            sign_code(
                facts,
                key,
                xr_id=mint(entropy, "xr_"),
                broadcast_token=mint(entropy, TOKEN_PREFIX, TOKEN_RANDOM_CHARS),
                head=head,
            )
            for _ in range(request.count)
        ]

    def _audit_entry(self, queued: QueuedRequest, issued: Sequence[Code]) -> AuditEntry:
        is_single = queued.request.route == "single"
        entry = audit.entry_of(
            queued.scope,
            self._ctx.entropy,
            "code.issued" if is_single else "code.batch_issued",
            now=self.quota.at,
            project_id=queued.request.project_id,
            **({"xr_id": issued[0].xr_id} if is_single else {"xr_ids": [code.xr_id for code in issued]}),
        )
        return replace(entry, traceparent=queued.traceparent)

    def _keep_receipt(self, request: IssueRequest, response: bytes) -> None:
        keyed = request.keyed
        if keyed is None:
            return
        assert keyed.request_digest is not None, "a request that can be issued has a digest"
        receipt = Receipt(
            keyed.key_digest, request.project_id, keyed.route, keyed.request_digest, response, self.quota.at
        )
        self._receipts[keyed.key_digest] = receipt
        self.new_receipts.append(receipt)
