"""The heads of audit chains in the transparency log, which show their owners that nobody altered a chain later."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.log.entry import audit_head_bytes, digest
from soundmark.core.domain.tenancy.audit_chain import Head, LoggedHead
from soundmark.core.steps.log import log_audit_head
from soundmark.core.store.log import checkpoints, tree
from soundmark.core.store.tenancy import audit_chain, logged_heads
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text import base64url

_AT_ONCE: Final = 100
# Sealing holds a head for some milliseconds, several times a second where an organisation writes all the time.
_ATTEMPTS: Final = 20
_PAUSE_S: Final = 0.05


async def log_heads(ctx: Context) -> int:
    """Enter the head of each chain that has grown since its last one, unless that is of this minute; return how many.

    Run it once a minute: a head is in the log at most two minutes after an entry was chained.

    Raises: DatabaseUnavailable.
    Source: contract, section 11, Audit chain.
    """
    count, after = 0, ""
    while True:
        async with ctx.db.transaction() as tx:
            grown = await logged_heads.list_grown(tx, after=after, limit=_AT_ONCE)
        for organization_id in grown:
            count += await _log_head(ctx, organization_id)
        if len(grown) < _AT_ONCE:
            return count
        after = grown[-1]


async def find_logged_head(tx: Tx, organization_id: str) -> LoggedHead | None:
    """Return the newest head of an organisation that the published log has."""
    return await _find_published(tx, await logged_heads.list_newest_first(tx, organization_id))


async def _find_published(tx: Tx, heads: Sequence[LoggedHead]) -> LoggedHead | None:
    published = await checkpoints.find_published(tx)
    if published is None or not heads:
        return None
    # While witnesses are away, there is another head each minute; one statement looks for all of them.
    known = await tree.list_known(tx, [head.digest for head in heads], size=published.size)
    return next((head for head in heads if head.digest in known), None)


async def _log_head(ctx: Context, organization_id: str) -> bool:
    """Enter one head; return False if this minute has one, the organisation is gone, or sealing keeps it locked."""
    for _ in range(_ATTEMPTS):
        async with ctx.db.transaction(tenant=organization_id) as tx:
            head = await _lock_head(tx, organization_id)
            if head is not None:
                return await _enter(ctx, tx, organization_id, head)
        await asyncio.sleep(_PAUSE_S)
    return False


async def _lock_head(tx: Tx, organization_id: str) -> Head | None:
    if not await audit_chain.hold_tenant(tx, organization_id):
        return None
    return await audit_chain.lock_head(tx, organization_id)


async def _enter(ctx: Context, tx: Tx, organization_id: str, head: Head) -> bool:
    heads, now = await logged_heads.list_newest_first(tx, organization_id), ctx.clock.now()
    # By the minutes of the clock: 60 s would skip one whenever the job begins a moment earlier than last time.
    if heads and _minute_of(heads[0].logged_at) == _minute_of(now):
        return False
    if not await logged_heads.delete_grown(tx, organization_id):
        return False
    published = await _find_published(tx, heads)
    if published is not None:
        await logged_heads.delete_older(tx, organization_id, than=published.entries)
    entries, chain_hash = head.chain_position, base64url.encode(head.chain_hash)
    its_digest = digest("audit.head", "head", audit_head_bytes(organization_id, entries, chain_hash))
    await logged_heads.insert(tx, organization_id, LoggedHead(entries, head.chain_hash, its_digest, now))
    await log_audit_head(tx, organization_id, entries=entries, chain_hash=chain_hash)
    return True


def _minute_of(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
