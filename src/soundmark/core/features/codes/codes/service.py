"""Commands on Codes."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TypeVar

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.code import Code, ListedCode
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import CampaignNotFound, CodeNotFound
from soundmark.core.steps import audit, webhooks
from soundmark.core.steps.signed_codes import read_signed_codes, verify_code
from soundmark.core.steps.tenancy import hold_authority, hold_project, require_project, require_reach
from soundmark.core.store.codes import broadcasts, campaigns, code_lists, codes
from soundmark.core.store.codes.code_lists import CodeFilter, CodeOrder
from soundmark.kit.postgres.database_server import read_server
from soundmark.kit.text.paging import Page, Position, cut_page

AnyCode = TypeVar("AnyCode", Code, ListedCode)


@dataclass(frozen=True, slots=True)
class RevokedSelection:
    """How many Codes of a selection were requested, and how many were revoked."""

    requested_count: int
    revoked_count: int


async def get_code(ctx: RequestContext, scope: TenantScope, xr_id: str, *, project_id: str | None = None) -> Code:
    """Return one Code, in any state, after its signature and every stored fact were checked.

    Raises: CodeNotFound, also for a Code of another tenant or project, and for one that does not verify.
    """
    if project_id is not None:
        require_reach(scope, project_id)
    async with ctx.pipelined.reading(tenant=scope.organization_id) as (tx, send):
        listed = send(codes.find(tx, scope, xr_id, project_id=project_id))
    code = listed.result()
    if code is None:
        raise CodeNotFound
    async with ctx.pipelined.reading(tenant=scope.organization_id) as (tx, send):
        found = send(read_signed_codes(tx, [code]))
    return await verify_code(ctx, next(iter(found.result()), None))


async def list_codes(
    ctx: RequestContext,
    scope: TenantScope,
    code_filter: CodeFilter,
    order: CodeOrder,
    *,
    after: Position | None,
    limit: int,
) -> tuple[Page[ListedCode], datetime]:
    """Return the Codes that match the filter, in this order, and the moment at which to judge their states.

    Each page has its own moment, after its rows were read. Codes that are no longer in the requested state are left
    out, so a page may be shorter than its limit.

    Raises: ProjectNotFound; CampaignNotFound, also for a campaign outside the project that the filter names.
    """
    page = await _read_page(ctx, scope, code_filter, order, after=after, limit=limit)
    return _judge_page(ctx, code_filter, page)


async def list_signed_codes(
    ctx: RequestContext,
    scope: TenantScope,
    code_filter: CodeFilter,
    order: CodeOrder,
    *,
    after: Position | None,
    limit: int,
) -> tuple[Page[Code], datetime]:
    """Do the same as `list_codes`, with the signed record of each Code, after its signature and facts were checked.

    A Code that does not verify raises an alarm and is left out.
    """
    listed = await _read_page(ctx, scope, code_filter, order, after=after, limit=limit)
    async with ctx.pipelined.reading(tenant=scope.organization_id) as (tx, send):
        found = send(read_signed_codes(tx, listed.entries))
    verified = []
    for code in found.result():
        with suppress(CodeNotFound):
            verified.append(await verify_code(ctx, code))
        await asyncio.sleep(0)  # A hundred signatures take long enough that others need the event loop in between.
    return _judge_page(ctx, code_filter, Page(verified, listed.next_position))


async def revoke_code(ctx: RequestContext, scope: TenantScope, xr_id: str) -> Code:
    """Revoke the Code: no resolution that starts afterwards returns its intent.

    A revoked or expired Code is returned unchanged.

    Raises: CodeNotFound.
    Source: API v1, "States and transitions", XR Code; contract, section 4.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        listed = await codes.lock(tx, scope, xr_id)
        if listed is None:
            raise CodeNotFound
        now = ctx.clock.now()  # Read after the lock wait, so that expiry is judged when we act.
        if listed.status(now) == "active":
            await codes.update_revoked(tx, scope, [xr_id], now=now)
            await broadcasts.update_revoked(tx, tokens=[listed.broadcast_token], now=now)
            await audit.record(
                tx, scope, ctx.entropy, "code.revoked", now=now, project_id=listed.project_id, xr_id=xr_id
            )
            listed = replace(listed, revoked_at=now)
        found = await read_signed_codes(tx, [listed])
        server = await read_server(tx)
    await ctx.promotions.outlast_leases(server)
    return await verify_code(ctx, found[0] if found else None)


async def revoke_codes(
    ctx: RequestContext, scope: TenantScope, project_id: str, xr_ids: Sequence[str]
) -> RevokedSelection:
    """Revoke the active Codes of a selection: no resolution that starts afterwards returns any of their intents.

    The whole selection is locked before any of it changes. Repeating the call is safe: it changes nothing, and is
    audited again. Signatures are not checked, because an altered Code must be revocable too.

    Raises: ProjectNotFound; CodeNotFound if any Code is missing or belongs to another project, before any change.
    Source: API v1, "States and transitions", XR Code; contract, section 3.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_project(tx, scope, project_id)
        selection = await codes.lock_many(tx, scope, project_id, xr_ids)
        if len(selection) < len(xr_ids):
            raise CodeNotFound
        now = ctx.clock.now()  # Read after the lock wait, so that expiry is judged when we act.
        active = [code for code in selection if code.status(now) == "active"]
        await codes.update_revoked(tx, scope, [code.xr_id for code in active], now=now)
        await broadcasts.update_revoked(tx, tokens=[code.broadcast_token for code in active], now=now)
        revoked = RevokedSelection(requested_count=len(selection), revoked_count=len(active))
        await audit.record(
            tx, scope, ctx.entropy, "code.batch_revoked", now=now, project_id=project_id, **asdict(revoked)
        )
        await webhooks.announce(
            tx,
            scope.organization_id,
            ctx.entropy,
            type="code.revoked",
            actor=scope.actor,
            now=now,
            project_id=project_id,
            xr_ids=[code.xr_id for code in active],
        )
        server = await read_server(tx)
    await ctx.promotions.outlast_leases(server)
    return revoked


async def _read_page(
    ctx: RequestContext,
    scope: TenantScope,
    code_filter: CodeFilter,
    order: CodeOrder,
    *,
    after: Position | None,
    limit: int,
) -> Page[ListedCode]:
    """Return a page, unless the filter names a project or campaign that does not exist.

    An empty list would say that nothing was issued there.
    """
    project_id, campaign_id = code_filter.project_id, code_filter.campaign_id
    now = ctx.clock.now()
    async with ctx.pipelined.reading(tenant=scope.organization_id) as (tx, send):
        if project_id is not None:
            send(require_project(tx, scope, project_id))
        campaign = None if campaign_id is None else send(campaigns.find(tx, scope, campaign_id))
        rows = send(code_lists.list_page(tx, scope, code_filter, order, after=after, limit=limit + 1, now=now))
    if campaign is not None:
        found = campaign.result()
        if found is None or project_id not in {None, found.project_id}:
            raise CampaignNotFound
    return cut_page(rows.result(), limit, lambda row: Position(getattr(row, order.by), row.xr_id))


def _judge_page(ctx: RequestContext, code_filter: CodeFilter, page: Page[AnyCode]) -> tuple[Page[AnyCode], datetime]:
    """Leave out the Codes that are no longer in the requested state, and return the moment at which it was judged."""
    now = ctx.clock.now()
    if code_filter.status is not None:
        page = replace(page, entries=[row for row in page.entries if row.status(now) == code_filter.status])
    return page, now
