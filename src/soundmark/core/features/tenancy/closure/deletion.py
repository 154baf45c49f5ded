"""The phases of a closure after which there is no way back, for requests and for the job that resumes them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, LiteralString

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.closure import Closure, ClosureSubject
from soundmark.core.domain.tenancy.scope import Actor
from soundmark.core.features.tenancy.closure.certificate import write_certificate
from soundmark.core.live.keyring import read_signing_key
from soundmark.core.steps import audit
from soundmark.core.steps.abuse_claims import settle_claims_of
from soundmark.core.steps.log import log_document
from soundmark.core.store.platform import abuse_reports, deletion_certificates
from soundmark.core.store.tenancy import closures, deletions, organizations, projects
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.postgres.database_server import DatabaseServer, read_server
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_ROWS_AT_ONCE: Final = 2_000  # Some 50 ms, for which a command on one of these Codes may wait.
_CERTIFICATES_AT_ONCE: Final = 50  # Each may have a megabyte.


async def delete_everything(ctx: Context, subject: ClosureSubject, actor: Actor) -> None:
    """Delete what is left of a subject whose gates are passed, and store the certificate.

    5. Delete the rows of which there may be millions, some at a time; each step counts what it deleted.
    6. Delete the rest, count again, and store the certificate, in one transaction.

    Both phases are safe to repeat, and several may work at once. If somebody else has completed the closure, this does
    nothing.
    """
    await settle_claims_of(ctx.db, subject.organization_id)
    async with ctx.db.transaction(tenant=subject.organization_id) as tx:
        project_ids = await deletions.list_project_ids(tx, subject)
    for project_id in project_ids:
        await _delete_codes(ctx, subject, project_id)
    await _repeat(ctx, subject, partial(_delete_certificates, ctx, subject), _CERTIFICATES_AT_ONCE)
    if subject.project_id is None:
        await _repeat(ctx, subject, partial(_delete_seals, ctx, subject), _ROWS_AT_ONCE)
        await _repeat(ctx, subject, partial(_delete_audit_entries, ctx, subject), _ROWS_AT_ONCE)
        for delete in deletions.DELETE_WEBHOOKS:
            await _repeat(ctx, subject, partial(_delete_webhooks, ctx, subject, delete), _ROWS_AT_ONCE)
    await ctx.promotions.outlast_leases(await _complete(ctx, subject, actor))


async def _delete_codes(ctx: Context, subject: ClosureSubject, project_id: str) -> None:
    """Do phase 5 for the Codes of a project, newest first."""
    before: Position | None = None

    async def delete_some(tx: Tx) -> int:
        nonlocal before
        deleted = await deletions.delete_codes(
            tx, subject.organization_id, project_id, before=before, limit=_ROWS_AT_ONCE
        )
        if deleted:
            await deletions.delete_broadcasts(tx, [code.broadcast_token for code in deleted])
            await closures.update_deleted(tx, subject, codes=len(deleted), now=ctx.clock.now())
            oldest = min(deleted, key=lambda code: (code.issued_at, code.xr_id))
            before = Position(oldest.issued_at, oldest.xr_id)
        return len(deleted)

    await _repeat(ctx, subject, delete_some, _ROWS_AT_ONCE)


async def _delete_certificates(ctx: Context, subject: ClosureSubject, tx: Tx) -> int:
    deleted_count = await deletions.delete_decode_certificates(tx, subject, limit=_CERTIFICATES_AT_ONCE)
    await closures.update_deleted(tx, subject, certificates=deleted_count, now=ctx.clock.now())
    return deleted_count


async def _delete_seals(ctx: Context, subject: ClosureSubject, tx: Tx) -> int:
    deleted_count = await deletions.delete_audit_seals(tx, subject.organization_id, limit=_ROWS_AT_ONCE)
    await closures.update_deleted(tx, subject, now=ctx.clock.now())
    return deleted_count


async def _delete_audit_entries(ctx: Context, subject: ClosureSubject, tx: Tx) -> int:
    deleted_count = await deletions.delete_audit_entries(tx, subject.organization_id, limit=_ROWS_AT_ONCE)
    await closures.update_deleted(tx, subject, audit_entries=deleted_count, now=ctx.clock.now())
    return deleted_count


async def _delete_webhooks(ctx: Context, subject: ClosureSubject, delete: LiteralString, tx: Tx) -> int:
    deleted_count = await deletions.delete_some(tx, delete, subject.organization_id, limit=_ROWS_AT_ONCE)
    await closures.update_deleted(tx, subject, now=ctx.clock.now())
    return deleted_count


async def _repeat(
    ctx: Context,
    subject: ClosureSubject,
    delete_some: Callable[[Tx], Awaitable[int]],
    rows_at_once: int,
) -> None:
    """Run `delete_some` in transactions of its own until it deletes fewer rows than `rows_at_once`."""
    while True:
        began_s = ctx.clock.monotonic_s()
        async with ctx.db.transaction(tenant=subject.organization_id) as tx:
            if await closures.lock(tx, subject) is None:
                return
            if await delete_some(tx) < rows_at_once:
                return
        await asyncio.sleep(ctx.clock.monotonic_s() - began_s)  # Half of the time belongs to everybody else.


async def _complete(ctx: Context, subject: ClosureSubject, actor: Actor) -> DatabaseServer:
    """Do phase 6, and return the server on which the closure is complete."""
    async with ctx.db.transaction(tenant=subject.organization_id) as tx:
        server = await read_server(tx)
        closure = await _lock_everything(tx, subject)
        if closure is None:
            return server
        assert closure.phase == "deleting", "the gates were passed"
        key = await read_signing_key(tx, ctx.sealer)
        now = ctx.clock.now()
        counts = await deletions.count(tx, subject)
        if counts.codes or counts.decode_certificates:
            raise AssertionError("a Code or a decode certificate was added to what is being deleted")
        await _delete_rest(ctx, tx, closure, actor)
        remaining = await deletions.count(tx, subject)
        if any(remaining.model_dump().values()):
            raise AssertionError("the deletion has left something")
        entries_count = closure.deleted_audit_entries + counts.audit_entries
        deleted = counts.model_copy(
            update={
                "codes": closure.deleted_codes,
                "audit_entries": entries_count,
                "decode_certificates": closure.deleted_certificates,
            }
        )
        document = write_certificate(key, closure, deleted, remaining, completed_at=now)
        await deletion_certificates.insert(tx, closure.certificate_id, document, now=now)
        await log_document(tx, canonicalize(json.loads(document)))
    return server


async def _lock_everything(tx: Tx, subject: ClosureSubject) -> Closure | None:
    """Wait for every command in the subject, and keep the next ones waiting; None if the closure is complete.

    Lock order: docs/locks.md.
    """
    if subject.project_id is None:
        await deletions.lock_members(tx, subject.organization_id)
    await deletions.lock_api_keys(tx, subject)
    if subject.project_id is None:
        is_there = await organizations.lock_for_deletion(tx, subject.organization_id)
    else:
        is_there = await projects.lock_for_deletion(tx, subject.organization_id, subject.project_id)
    closure = await closures.lock(tx, subject) if is_there else None
    if closure is not None:
        await deletions.lock_campaigns(tx, subject)
    return closure


async def _delete_rest(ctx: Context, tx: Tx, closure: Closure, actor: Actor) -> None:
    subject = closure.subject
    if subject.project_id is None:
        await deletions.delete_jobs(tx, subject.organization_id)
        # No foreign key deletes these. The worker may have written some since; it no longer can.
        for delete in deletions.DELETE_WEBHOOKS:
            while await deletions.delete_some(tx, delete, subject.organization_id, limit=_ROWS_AT_ONCE):
                pass
        await abuse_reports.update_orphaned(tx, subject.organization_id, now=ctx.clock.now())
        await deletions.delete_organization(tx, subject.organization_id)
        return
    await deletions.delete_project(tx, subject.organization_id, subject.project_id)
    await closures.delete(tx, subject)
    await audit.record_as(
        tx,
        actor,
        ctx.entropy,
        "project.deleted",
        organization_id=subject.organization_id,
        now=ctx.clock.now(),
        project_id=subject.project_id,
        certificate_id=closure.certificate_id,
    )
