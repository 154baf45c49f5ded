"""Deleting everything of a tenant, in transactions so short that nobody waits for them.

A purge has four phases. Each is safe to repeat, so a purge that was interrupted continues where it ended:

1. Record the purge and revoke the integrations. From now on, nothing can be added to the subject.
2. Wait for the batches of events that read the integrations before that.
3. Delete the rows of the integrations, some at a time, until the caller's deadline is near.
4. Delete the integrations and what is left, count again, and complete the purge, in one transaction.
"""

import asyncio
from dataclasses import asdict, replace
from typing import Final, LiteralString

from soundmark.audience.context import Context
from soundmark.audience.domain.purge import Purge, PurgeCounts, PurgeSubject
from soundmark.audience.problems import OperationConflict
from soundmark.audience.store import purges, retention
from soundmark.kit.deadline import find_remaining_s
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.private.purges import AudienceCounts, PurgeResponse

_ROWS_AT_ONCE: Final = 10_000  # Some 50 ms, which is how long anything else may wait for such a transaction.
_MARGIN_S: Final = 1.0  # Before the deadline: more than a step takes on a busy machine, so that a call makes progress.
_NONE: Final = PurgeCounts(integrations=0, events=0, integrity_days=0, legacy_days=0, spent_proofs=0)

# The rows of integrations, in the order of their deletion, with the count that each adds to.
_TABLES: Final[tuple[tuple[LiteralString, str | None], ...]] = (
    (purges.DELETE_EVENTS, "events"),
    (purges.DELETE_EVENT_IDS, None),
    (purges.DELETE_SPENT_PROOFS, "spent_proofs"),
    (purges.DELETE_INTEGRITY_DAYS, "integrity_days"),
    (purges.DELETE_MEASURED_CODES, None),
)


async def purge(ctx: Context, operation_id: str, subject: PurgeSubject) -> PurgeResponse:
    """Delete everything of an organisation or a project; return what was deleted so far.

    The response is complete if it has `remaining`. Otherwise the deadline came first, and a repetition continues.
    A repetition of a completed purge returns the same counts.

    Raises: OperationConflict if the operation purges another subject.
    Source: API v1, "Organisation deletion rules" 4 and "Project deletion rules"; contract, section 8.
    """
    begun = await _begin(ctx, operation_id, subject)
    if begun.is_complete:
        return _describe(begun.deleted, remaining=_NONE)
    await _outwait_events(ctx, subject)
    for statement, count in _TABLES:
        if not await _delete_all(ctx, operation_id, subject, statement, count):
            return await _describe_progress(ctx, operation_id)
    return await _complete(ctx, operation_id, subject)


async def count_integrations(ctx: Context, subject: PurgeSubject) -> int:
    """Return the number of integrations of a subject, revoked ones included."""
    async with ctx.db.transaction() as tx:
        return len(await purges.list_numbers(tx, subject))


async def _begin(ctx: Context, operation_id: str, subject: PurgeSubject) -> Purge:
    """Do phase 1. Nothing is added to a subject that has a purge (`steps.tenancy`)."""
    async with ctx.db.transaction() as tx:
        await purges.lock_tenant(tx, subject.organization_id)
        now = ctx.clock.now()
        await purges.insert_if_absent(tx, operation_id, subject, now=now)
        begun = await _lock(tx, operation_id)
        if begun.subject_digest != subject.digest():
            raise OperationConflict
        if not begun.is_complete:
            await purges.update_revoked(tx, subject, now=now)
    return begun


async def _outwait_events(ctx: Context, subject: PurgeSubject) -> None:
    """Do phase 2: a batch of events holds its months before it reads its integrations."""
    async with ctx.db.transaction() as tx:
        await purges.lock_months(tx, subject.organization_id)


async def _delete_all(
    ctx: Context, operation_id: str, subject: PurgeSubject, statement: LiteralString, count: str | None
) -> bool:
    """Do phase 3 for one table; return whether it is done."""
    while True:
        began_s = ctx.clock.monotonic_s()
        async with ctx.db.transaction() as tx:
            await retention.hold(tx)
            await _lock(tx, operation_id)
            deleted = await purges.delete_some(tx, statement, subject, limit=_ROWS_AT_ONCE)
            if count is not None:
                await purges.update_deleted(tx, operation_id, replace(_NONE, **{count: deleted}))
        if deleted < _ROWS_AT_ONCE:
            return True
        took_s = ctx.clock.monotonic_s() - began_s
        remaining_s = find_remaining_s()
        if remaining_s is not None and remaining_s < _MARGIN_S + 2 * took_s:
            return False
        await asyncio.sleep(took_s)  # Half of the time belongs to everybody else.


async def _complete(ctx: Context, operation_id: str, subject: PurgeSubject) -> PurgeResponse:
    """Do phase 4. If it fails, or is interrupted, nothing of it is done."""
    async with ctx.db.transaction() as tx:
        await purges.lock_tenant(tx, subject.organization_id)
        await retention.hold(tx)
        begun = await _lock(tx, operation_id)
        if begun.is_complete:
            return _describe(begun.deleted, remaining=_NONE)
        numbers = await purges.list_numbers(tx, subject)
        deleted = PurgeCounts(
            events=0,
            spent_proofs=0,
            integrity_days=0,
            integrations=await purges.delete_integrations(tx, subject),
            legacy_days=await purges.delete_legacy_days(tx, subject),
        )
        await purges.delete_operations(tx, subject)
        if subject.project_id is None:
            await purges.delete_entitlements(tx, subject.organization_id)
            await purges.delete_suspension(tx, subject.organization_id)
            await purges.delete_months(tx, subject.organization_id)
        remaining = await purges.count_remaining(tx, subject, numbers)
        if remaining != _NONE:
            raise AssertionError("rows of a purged tenant came back")
        await purges.update_deleted(tx, operation_id, deleted)
        await purges.update_completed(tx, operation_id, now=ctx.clock.now())
        completed = await _lock(tx, operation_id)
    return _describe(completed.deleted, remaining=remaining)


async def _describe_progress(ctx: Context, operation_id: str) -> PurgeResponse:
    async with ctx.db.transaction() as tx:
        return _describe((await _lock(tx, operation_id)).deleted, remaining=None)


async def _lock(tx: Tx, operation_id: str) -> Purge:
    begun = await purges.lock(tx, operation_id)
    assert begun is not None, "a purge stays for ever"
    return begun


def _describe(deleted: PurgeCounts, *, remaining: PurgeCounts | None) -> PurgeResponse:
    return PurgeResponse(deleted=_counts(deleted), remaining=None if remaining is None else _counts(remaining))


def _counts(counts: PurgeCounts) -> AudienceCounts:
    return AudienceCounts(**asdict(counts))
