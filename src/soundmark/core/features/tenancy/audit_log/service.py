"""Queries of the audit log, which `steps.audit` writes."""

from collections.abc import Callable, Sequence
from typing import Final

from soundmark.core.context import Context, RequestContext
from soundmark.core.domain.tenancy.audit import AuditEntry
from soundmark.core.domain.tenancy.audit_chain import LoggedHead, Verification
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.tenancy.audit_log.heads import find_logged_head
from soundmark.core.features.tenancy.audit_log.verification import verify
from soundmark.core.store.tenancy import audit
from soundmark.core.store.tenancy.audit import AuditFilter
from soundmark.kit.text.paging import Page, Position, cut_page

_READ_AT_ONCE: Final = 500


async def list_entries(
    ctx: RequestContext, scope: TenantScope, audit_filter: AuditFilter, *, before: Position | None, limit: int
) -> Page[AuditEntry]:
    """Return the entries that match the filter, newest first."""
    async with ctx.pipelined.reading(tenant=scope.organization_id) as (tx, send):
        rows = send(audit.list_newest_first(tx, scope, audit_filter, before=before, limit=limit + 1))
    return cut_page(rows.result(), limit, _position)


async def read_all(
    ctx: Context, scope: TenantScope, audit_filter: AuditFilter, take: Callable[[Sequence[AuditEntry]], None]
) -> None:
    """Give `take` every entry that matches the filter, newest first, as of one moment, a few hundred at a time."""
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        before: Position | None = None
        while True:
            rows = await audit.list_newest_first(tx, scope, audit_filter, before=before, limit=_READ_AT_ONCE)
            take(rows)
            if len(rows) < _READ_AT_ONCE:
                return
            before = _position(rows[-1])


async def verify_chain(ctx: RequestContext, scope: TenantScope) -> tuple[Verification, LoggedHead | None]:
    """Check that the organisation's audit log is what was written; return the newest head in the log, too."""
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        found = await verify(tx, ctx.chain.key, scope.organization_id)
        return found, await find_logged_head(tx, scope.organization_id)


def _position(entry: AuditEntry) -> Position:
    return Position(entry.created_at, entry.id)
