"""Issuing for one organisation whatever was asked for at the same time: one transaction, one answer for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from soundmark.core.context import RequestContext
from soundmark.core.domain.audit import AuditEntry
from soundmark.core.domain.campaign import Campaign
from soundmark.core.domain.code import TOKEN_PREFIX, TOKEN_RANDOM_CHARS, Code, Facts, signed_code
from soundmark.core.domain.quota import Quota
from soundmark.core.domain.receipt import Attempt, Receipt
from soundmark.core.domain.scope import TenantScope
from soundmark.core.features.codes.judgement import Issuance, judge, no_key, recalled
from soundmark.core.problems import ProjectNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.authority import hold_authority
from soundmark.core.store import campaigns, code_entitlements, code_usage, codes, issuance_receipts, projects
from soundmark.kit.ids import may_be_id, mint
from soundmark.kit.months import day_of, month_of
from soundmark.kit.postgres import Tx
from soundmark.kit.problems import Problem


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to issue, and who makes it. `write` makes the answer.

    `intent` is canonical; `attempt` is what an idempotency key names, and `has_bad_key` that it names nothing;
    `against` is what Audience has against measuring with the integration that is named.
    """

    scope: TenantScope
    wanted: Issuance
    intent: bytes
    attempt: Attempt | None
    has_bad_key: bool
    against: Problem | None
    write: Callable[[Sequence[Code]], bytes]


@dataclass(frozen=True, slots=True)
class Issued:
    """The answer to an issuance, the very bytes that every repetition is answered too, and what is left to issue."""

    answer: bytes
    quota: Quota


async def issue_together(ctx: RequestContext, asked: Sequence[Asked]) -> list[Issued | Problem]:
    """What becomes of each request, all of one organisation and in this order, as if each had come after the other.

    Those that are issued are one commit; why another is not is nobody else's matter.
    """
    organization_id = asked[0].scope.organization_id
    async with ctx.db.transaction(tenant=organization_id) as tx:
        sitting = _Sitting(ctx, await _hold(ctx, tx, organization_id, asked))
        outcomes = [sitting.outcome(one) for one in asked]
        if sitting.codes:
            async with tx.ending():
                await codes.insert(tx, sitting.codes)
                await code_usage.insert_or_add(tx, organization_id, day_of(sitting.quota.at), len(sitting.codes))
                await audit.record_all(tx, sitting.entries)
                if sitting.fresh_receipts:
                    await issuance_receipts.insert_or_update(tx, organization_id, sitting.fresh_receipts)
    return outcomes


@dataclass(frozen=True, slots=True)
class _Held:
    """What issuances rest on, nothing of which changes until their transaction ends.

    `refusals` tells who has lost the authority to issue since he was let in.
    """

    refusals: Mapping[TenantScope, Problem | None]
    project_ids: frozenset[str]
    receipts: Mapping[bytes, Receipt]
    campaigns: Mapping[str, Campaign]
    quota: Quota


async def _hold(ctx: RequestContext, tx: Tx, organization_id: str, asked: Sequence[Asked]) -> _Held:
    """What there is, held. Lock order: docs/locks.md."""
    month = month_of(ctx.clock.now())
    project_ids = {one.wanted.project_id for one in asked}
    key_digests = {one.attempt.key_digest for one in asked if one.attempt is not None}
    campaign_ids = {one.wanted.campaign_id for one in asked if one.wanted.campaign_id is not None}
    nameable_ids = [campaign_id for campaign_id in campaign_ids if may_be_id(campaign_id)]
    async with tx.pipeline() as send:
        refusals = {scope: send(_refusal(tx, scope)) for scope in dict.fromkeys(one.scope for one in asked)}
        held_projects = send(projects.hold_many(tx, organization_id, list(project_ids)))
        # One queue for each organisation: from here on nobody else issues for it. What is read behind this is read
        # inside the queue, so of two requests with one key the second finds what the first was answered.
        entitlement = send(code_entitlements.lock(tx, organization_id))
        receipts = send(issuance_receipts.find(tx, organization_id, list(key_digests))) if key_digests else None
        held_campaigns = send(campaigns.hold_many(tx, organization_id, nameable_ids)) if nameable_ids else None
        issued_count = send(code_usage.count_issued(tx, organization_id, month))
    now = ctx.clock.now()  # Read after the last wait: schedule, expiry, quota and month are judged when we act.
    is_same_month = month_of(now) == month
    count = (
        issued_count.result() if is_same_month else await code_usage.count_issued(tx, organization_id, month_of(now))
    )
    return _Held(
        refusals={scope: refusal.result() for scope, refusal in refusals.items()},
        project_ids=frozenset(held_projects.result()),
        receipts=receipts.result() if receipts is not None else {},
        campaigns=held_campaigns.result() if held_campaigns is not None else {},
        quota=Quota(entitlement.result().monthly_quota(now), count, now),
    )


async def _refusal(tx: Tx, scope: TenantScope) -> Problem | None:
    """Why the caller may not issue any more, what he keeps until the transaction ends otherwise."""
    try:
        await hold_authority(tx, scope)
    except Problem as problem:
        return problem
    return None


class _Sitting:
    """Judges one request after the other, each as if those before it were done, and collects what is to be written."""

    def __init__(self, ctx: RequestContext, held: _Held) -> None:
        self._ctx: Final = ctx
        self._held: Final = held
        self._receipts: Final = dict(held.receipts)
        self.quota = held.quota
        self.codes: Final[list[Code]] = []
        self.entries: Final[list[AuditEntry]] = []
        self.fresh_receipts: Final[list[Receipt]] = []

    def outcome(self, asked: Asked) -> Issued | Problem:
        """What becomes of one request."""
        try:
            return self._issue(asked)
        except Problem as problem:
            return problem

    def _issue(self, asked: Asked) -> Issued:
        refusal = self._held.refusals[asked.scope]
        if refusal is not None:
            raise refusal.anew()
        if asked.wanted.project_id not in self._held.project_ids:
            raise ProjectNotFound
        if asked.has_bad_key:
            raise no_key()
        attempt, now = asked.attempt, self.quota.at
        answer = recalled(self._receipts.get(attempt.key_digest), attempt, now) if attempt is not None else None
        if answer is not None:
            return Issued(answer, self.quota)
        campaign = self._held.campaigns.get(asked.wanted.campaign_id or "")
        judge(asked.wanted, campaign, self.quota, asked.against)
        issued = self._sign(asked)
        answer = asked.write(issued)
        self._note(asked, issued)
        if attempt is not None:
            assert attempt.request_digest is not None, "what can be issued has a digest"
            receipt = Receipt(
                attempt.key_digest, asked.wanted.project_id, attempt.route, attempt.request_digest, answer, now
            )
            self._receipts[attempt.key_digest] = receipt
            self.fresh_receipts.append(receipt)
        self.quota = self.quota.after(len(issued))
        return Issued(answer, self.quota)

    def _sign(self, asked: Asked) -> list[Code]:
        key, entropy, wanted = self._ctx.custody.keyring.active, self._ctx.entropy, asked.wanted
        facts = Facts(
            organization_id=asked.scope.organization_id,
            project_id=wanted.project_id,
            campaign_id=wanted.campaign_id,
            issuer=wanted.issuer,
            issued_at=self.quota.at,
            expires_at=wanted.expires_at,
            intent=asked.intent,
            audience_integration_id=wanted.integration_id,
            key_id=key.key_id,
        )
        head = facts.head()
        return [
            signed_code(
                facts,
                key,
                xr_id=mint(entropy, "xr_"),
                broadcast_token=mint(entropy, TOKEN_PREFIX, TOKEN_RANDOM_CHARS),
                head=head,
            )
            for _ in range(wanted.count)
        ]

    def _note(self, asked: Asked, issued: Sequence[Code]) -> None:
        is_single = asked.wanted.route == "single"
        self.codes.extend(issued)
        self.entries.append(
            audit.entry_of(
                asked.scope,
                self._ctx.entropy,
                action="code.issued" if is_single else "code.batch_issued",
                now=self.quota.at,
                project_id=asked.wanted.project_id,
                metadata={"xr_id": issued[0].xr_id} if is_single else {"xr_ids": [code.xr_id for code in issued]},
            )
        )
