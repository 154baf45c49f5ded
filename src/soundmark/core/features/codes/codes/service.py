"""Commands on Codes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.code import Code, ListedCode
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import CampaignNotFound, CodeNotFound
from soundmark.core.steps import audit, webhooks
from soundmark.core.steps.code_integrity import verify_code
from soundmark.core.steps.signed_codes import read_signed_codes
from soundmark.core.steps.tenancy import hold_authority, hold_project, require_project, require_reach
from soundmark.core.store.codes import broadcasts, campaigns, code_lists, codes
from soundmark.core.store.codes.code_lists import CodeFilter
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Page, Position, cut_page


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
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        listed = await codes.find(tx, scope, xr_id, project_id=project_id)
        found = await read_signed_codes(tx, [] if listed is None else [listed])
    return await verify_code(ctx, found[0] if found else None)


async def list_codes(
    ctx: RequestContext, scope: TenantScope, code_filter: CodeFilter, *, before: Position | None, limit: int
) -> tuple[Page[ListedCode], datetime]:
    """Return the Codes that match the filter, newest first, and the moment at which to judge their states.

    Each page has its own moment, after its rows were read. Codes that are no longer in the requested state are left
    out, so a page may be shorter than its limit.

    Raises: ProjectNotFound; CampaignNotFound, also for a campaign outside the project that the filter names.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await _require_filters(tx, scope, code_filter)
        rows = await code_lists.list_newest_first(
            tx, scope, code_filter, before=before, limit=limit + 1, now=ctx.clock.now()
        )
    page, now = cut_page(rows, limit, lambda row: Position(row.issued_at, row.xr_id)), ctx.clock.now()
    if code_filter.status is not None:
        page = replace(page, entries=[row for row in page.entries if row.status(now) == code_filter.status])
    return page, now


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
                tx,
                scope,
                ctx.entropy,
                action="code.revoked",
                now=now,
                project_id=listed.project_id,
                metadata={"xr_id": xr_id},
            )
            listed = replace(listed, revoked_at=now)
        found = await read_signed_codes(tx, [listed])
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
            tx,
            scope,
            ctx.entropy,
            action="code.batch_revoked",
            now=now,
            project_id=project_id,
            metadata=asdict(revoked),
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
    return revoked


async def _require_filters(tx: Tx, scope: TenantScope, code_filter: CodeFilter) -> None:
    """Refuse a project or campaign that does not exist: an empty list would say that nothing was issued there."""
    project_id, campaign_id = code_filter.project_id, code_filter.campaign_id
    if project_id is not None:
        await require_project(tx, scope, project_id)
    if campaign_id is not None:
        campaign = await campaigns.find(tx, scope, campaign_id)
        if campaign is None or project_id not in {None, campaign.project_id}:
            raise CampaignNotFound
