"""The command that deletes an organisation or a project, for good.

A deletion has six phases. A process may die after each of them; a repeated request then continues where it ended, and
once Audience was purged, so does a job (`jobs`):

1. Mark the subject, under the row lock that every command shares which adds to it, and record the request.
2. Wait for the operations in Audience that were requested before: they are judged, and the caller repeats.
3. Purge the subject in Audience, outside any transaction, under the id of the audit entry.
4. Judge the caller's authority and the gates again. After this phase there is no way back.
5. Delete the rows of which there may be millions, some at a time.
6. Delete the rest, count again, and store the certificate, in one transaction.
"""

from soundmark.core.context import Context, RequestContext
from soundmark.core.domain.tenancy.closure import NOTHING_PURGED, Closure, ClosureSubject
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.tenancy.closure.deletion import delete_everything
from soundmark.core.features.tenancy.closure.gates import find_billing_blocker, find_pending_blocker, require_gates_open
from soundmark.core.problems import (
    ConfirmationMismatch,
    DeletionBillingActive,
    DeletionOperationsPending,
    OrganizationNotFound,
    ProjectNotFound,
)
from soundmark.core.steps import audit
from soundmark.core.steps.cells import read_audience
from soundmark.core.steps.certificate_ids import derive_certificate_id
from soundmark.core.steps.tenancy import hold_authority, require_open_organization
from soundmark.core.store.tenancy import closures, organizations, projects
from soundmark.kit.postgres.transaction import Tx


async def delete(
    ctx: RequestContext, scope: TenantScope, subject: ClosureSubject, *, confirmation: str, request_id: str
) -> str:
    """Delete a subject with everything in it, in Audience too; return the id of the certificate.

    A repetition continues a deletion that was interrupted.

    Raises: ConfirmationMismatch; OrganizationNotFound; ProjectNotFound; DeletionBillingActive;
        ResourceDeletionInProgress for a project of an organisation that is being deleted; DeletionOperationsPending and
        AudienceUnavailable, after which the subject stays marked; what `hold_authority` raises.
    Source: API v1, "Organisation deletion rules" and "Project deletion rules"; contract, section 8.
    """
    closure = await _request(ctx, scope, subject, confirmation)
    if closure.phase == "requested":
        await _purge(ctx, closure, request_id)
    if closure.phase != "deleting":
        await _pass_gates(ctx, scope, subject)
    await delete_everything(ctx, subject, scope.actor)
    return closure.certificate_id


async def _request(ctx: RequestContext, scope: TenantScope, subject: ClosureSubject, confirmation: str) -> Closure:
    """Do phases 1 and 2. The marker stays, even if an operation is pending."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        await _lock_subject(tx, subject)
        if confirmation != subject.id:
            raise ConfirmationMismatch
        closure = await closures.lock(tx, subject)
        if closure is None:
            closure = await _mark(ctx, tx, scope, subject)
        pending = None if closure.phase == "deleting" else await find_pending_blocker(tx, subject)
    if pending is not None:
        raise DeletionOperationsPending
    return closure


async def _lock_subject(tx: Tx, subject: ClosureSubject) -> None:
    """Lock the row whose marker keeps everybody from adding to the subject. Lock order: docs/locks.md.

    A deletion of a project that was requested before that of its organisation goes on, because the organisation waits
    for it.
    """
    if subject.project_id is None:
        if await organizations.lock_marker(tx, subject.organization_id) is None:
            raise OrganizationNotFound
        return
    is_organization_open = await organizations.hold_open(tx, subject.organization_id)
    project = await projects.lock_marker(tx, subject.organization_id, subject.project_id)
    if project is None:
        raise ProjectNotFound
    if project.deletion_requested_at is None:
        require_open_organization(is_open=is_organization_open)


async def _mark(ctx: RequestContext, tx: Tx, scope: TenantScope, subject: ClosureSubject) -> Closure:
    now = ctx.clock.now()
    if await find_billing_blocker(tx, subject, now=now) is not None:
        raise DeletionBillingActive
    certificate_id = await derive_certificate_id(ctx, tx, subject)
    if subject.project_id is None:
        await organizations.update_deletion_requested(tx, subject.organization_id, now=now)
    else:
        await projects.update_deletion_requested(tx, subject.organization_id, subject.project_id, now=now)
    entry = await audit.record(
        tx,
        scope,
        ctx.entropy,
        "organization.deletion_requested" if subject.project_id is None else "project.deletion_requested",
        now=now,
        project_id=subject.project_id,
        certificate_id=certificate_id,
    )
    await closures.insert(tx, subject, certificate_id=certificate_id, operation_id=entry.id, now=now)
    closure = await closures.find(tx, subject)
    assert closure is not None, "it was just inserted"
    return closure


async def _purge(ctx: RequestContext, closure: Closure, request_id: str) -> None:
    """Do phase 3, and note that it is done. Since the subject is marked, a cell given later gets nothing of it."""
    purged = NOTHING_PURGED
    audience = await read_audience(ctx, closure.organization_id)
    if audience is not None:
        purged = await audience.purge(closure.subject, operation_id=closure.operation_id, request_id=request_id)
    async with ctx.db.transaction(tenant=closure.organization_id) as tx:
        current = await closures.lock(tx, closure.subject)
        if current is not None and current.phase == "requested":
            await closures.update_purged(tx, closure.subject, purged, now=ctx.clock.now())


async def _pass_gates(ctx: RequestContext, scope: TenantScope, subject: ClosureSubject) -> None:
    """Do phase 4 for a request."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        await begin_deleting(ctx, tx, subject)


async def begin_deleting(ctx: Context, tx: Tx, subject: ClosureSubject) -> None:
    """Judge the gates of a subject that Audience has purged, and pass them. Lock order: docs/locks.md.

    Raises: OrganizationNotFound, ProjectNotFound if it was deleted meanwhile; DeletionBillingActive;
        DeletionOperationsPending.
    """
    await _lock_subject(tx, subject)
    closure = await closures.lock(tx, subject)
    assert closure is not None, "a marked subject has a closure until it is deleted"
    if closure.phase == "purged":
        now = ctx.clock.now()
        await require_gates_open(tx, subject, now=now)
        await closures.update_phase(tx, subject, "deleting", now=now)
