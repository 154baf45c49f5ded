"""The preflight of a closure: what a deletion would do, and what is in its way."""

from datetime import datetime

from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.closure import Blocker, ClosurePreview, ClosureSubject
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.tenancy.closure.gates import find_billing_blocker, find_pending_blocker
from soundmark.core.problems import AudienceUnavailable, ResourceDeletionInProgress
from soundmark.core.steps.certificate_ids import derive_certificate_id
from soundmark.core.steps.tenancy import require_project
from soundmark.core.store.audience import cells
from soundmark.core.store.tenancy import closures, deletions, organizations
from soundmark.kit.postgres.transaction import Tx


async def preview_closure(
    ctx: RequestContext, scope: TenantScope, subject: ClosureSubject, *, request_id: str
) -> ClosurePreview:
    """Return what the deletion of a subject would do now. Nothing is changed.

    Raises: ProjectNotFound.
    Source: contract, section 8.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        requested_at = await _find_requested_at(tx, scope, subject)
        closure = await closures.find(tx, subject)
        certificate_id = await derive_certificate_id(ctx, tx, subject) if closure is None else closure.certificate_id
        now = ctx.clock.now()
        blockers = await _list_blockers(tx, subject, is_requested=closure is not None, now=now)
        counts = await deletions.count(tx, subject)
        active_codes_count = await deletions.count_active_codes(tx, subject, now=now)
        cell = await cells.find(tx, subject.organization_id)
    integrations_count: int | None
    try:
        integrations_count = await _count_integrations(ctx, cell, subject, request_id)
    except AudienceUnavailable:
        integrations_count = None
        blockers.append(Blocker(AudienceUnavailable.code))
    of_organization = {"projects": counts.projects, "members": counts.members} if subject.project_id is None else {}
    return ClosurePreview(
        blockers=tuple(blockers),
        counts={
            **of_organization,
            "campaigns": counts.campaigns,
            "codes": counts.codes,
            "active_codes": active_codes_count,
            "api_keys": counts.api_keys,
            "audience_integrations": integrations_count,
        },
        certificate_id=certificate_id,
        deletion_requested_at=requested_at,
    )


async def _count_integrations(ctx: RequestContext, cell: str | None, subject: ClosureSubject, request_id: str) -> int:
    return 0 if cell is None else await ctx.cells.open(cell).count_integrations(subject, request_id=request_id)


async def _find_requested_at(tx: Tx, scope: TenantScope, subject: ClosureSubject) -> datetime | None:
    if subject.project_id is None:
        return await organizations.find_deletion_requested_at(tx, subject.organization_id)
    return (await require_project(tx, scope, subject.project_id)).deletion_requested_at


async def _list_blockers(tx: Tx, subject: ClosureSubject, *, is_requested: bool, now: datetime) -> list[Blocker]:
    """Return what the deletion would be refused for, in the order in which it is judged."""
    blockers = []
    if subject.project_id is not None and not is_requested:
        closing_at = await organizations.find_deletion_requested_at(tx, subject.organization_id)
        if closing_at is not None:
            blockers.append(Blocker(ResourceDeletionInProgress.code))
    found = (await find_billing_blocker(tx, subject, now=now), await find_pending_blocker(tx, subject))
    return blockers + [blocker for blocker in found if blocker is not None]
