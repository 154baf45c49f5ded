"""Commands on campaigns."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from soundmark.core.context import Context, RequestContext
from soundmark.core.domain.codes.campaign import Campaign, StopResult, Summary, is_in_order
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.act import ACT_PREFIX
from soundmark.core.problems import CampaignArchived, CampaignNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.offline_packs import find_packs_valid_until
from soundmark.core.steps.tenancy import hold_active_project, hold_authority, require_project
from soundmark.core.store.codes import campaigns, codes
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed
from soundmark.kit.postgres.database_server import read_server
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.kit.text.paging import Page, Position, cut_page
from soundmark.kit.text.timestamps import format_timestamp

# For each statement of a stop, instead of the usual 30 s. 100,000 Codes take about two seconds; an emergency stop must
# not fail because a campaign is large.
STOP_TIMEOUT_S: Final = 600


@dataclass(frozen=True, slots=True)
class NewCampaign:
    """The campaign that a caller wants to create."""

    project_id: str
    name: str
    starts_at: datetime | None
    ends_at: datetime | None


class Changes(TypedDict, total=False):
    """The members to change; absent ones stay, and None clears a date."""

    name: str
    starts_at: datetime | None
    ends_at: datetime | None


async def create_campaign(ctx: Context, scope: TenantScope, new: NewCampaign) -> Campaign:
    """Create an active campaign in the project.

    Raises: ValidationFailed for a schedule that does not begin before it ends; ProjectNotFound; CampaignNameConflict;
        ResourceDeletionInProgress.
    Source: API v1, "Campaigns".
    """
    if not is_in_order(new.starts_at, new.ends_at):
        raise _not_in_order("ends_at")
    campaign_id = mint(ctx.entropy, "cmp_")
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_active_project(tx, scope, new.project_id)
        now = ctx.clock.now()
        campaign = Campaign(
            id=campaign_id,
            organization_id=scope.organization_id,
            project_id=new.project_id,
            name=new.name,
            starts_at=new.starts_at,
            ends_at=new.ends_at,
            created_at=now,
            archived_at=None,
        )
        await campaigns.insert(tx, scope, campaign)
        await audit.record(
            tx,
            scope,
            ctx.entropy,
            "campaign.created",
            now=now,
            project_id=campaign.project_id,
            campaign_id=campaign_id,
            **_metadata(campaign),
        )
    return campaign


async def list_campaigns(
    ctx: RequestContext, scope: TenantScope, project_id: str, *, before: Position | None, limit: int
) -> Page[Campaign]:
    """Return the campaigns of one project, newest first.

    Raises: ProjectNotFound.
    """
    async with ctx.pipelined.reading(tenant=scope.organization_id) as (tx, send):
        send(require_project(tx, scope, project_id))
        rows = send(campaigns.list_newest_first(tx, scope, project_id, before=before, limit=limit + 1))
    return cut_page(rows.result(), limit, lambda row: Position(row.created_at, row.id))


async def update_campaign(ctx: Context, scope: TenantScope, campaign_id: str, changes: Changes) -> Campaign:
    """Change a campaign's name or schedule for later issuances; Codes that were issued stay valid.

    Raises: CampaignNotFound; CampaignArchived; ValidationFailed if the changed schedule would not begin before it ends;
        CampaignNameConflict.
    Source: API v1, "Campaigns" and "States and transitions", Campaign.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        if "name" in changes:
            await campaigns.lock_names(tx, scope)
        campaign = await _lock(tx, scope, campaign_id)
        now = ctx.clock.now()
        if campaign.status == "archived":
            raise CampaignArchived
        updated = replace(campaign, **changes)
        if not is_in_order(updated.starts_at, updated.ends_at):
            raise _not_in_order("ends_at" if "ends_at" in changes else "starts_at")
        await campaigns.update(tx, scope, updated)
        await audit.record(
            tx,
            scope,
            ctx.entropy,
            "campaign.updated",
            now=now,
            project_id=campaign.project_id,
            campaign_id=campaign_id,
            previous=_metadata(campaign),
            current=_metadata(updated),
        )
    return updated


async def archive_campaign(ctx: Context, scope: TenantScope, campaign_id: str) -> Campaign:
    """Archive the campaign for good: it issues no further Codes, and those that were issued stay as they are.

    An archived campaign is returned unchanged.

    Raises: CampaignNotFound.
    Source: API v1, "States and transitions", Campaign.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        campaign = await _lock(tx, scope, campaign_id)
        now = ctx.clock.now()
        if campaign.status == "active":
            await campaigns.update_archived(tx, scope, campaign.id, now=now)
            await audit.record(
                tx,
                scope,
                ctx.entropy,
                "campaign.archived",
                now=now,
                project_id=campaign.project_id,
                campaign_id=campaign_id,
            )
            campaign = replace(campaign, archived_at=now)
    return campaign


async def stop_campaign(ctx: Context, scope: TenantScope, campaign_id: str) -> StopResult:
    """Archive the campaign and revoke all its active Codes, in one transaction.

    No resolution that starts afterwards returns an intent of the campaign, and no further Code appears in it. Repeating
    a stop is safe and audited each time: it revokes whatever is active. The offline packs that still name its Codes
    are read afterwards, so that the revocation does not wait for a pack that is being made.

    Raises: CampaignNotFound, also for a campaign of a project that the caller's API key does not belong to.
    Source: API v1, "States and transitions", Campaign; contract, section 3.
    """
    async with ctx.db.transaction(tenant=scope.organization_id, statement_timeout_s=STOP_TIMEOUT_S) as tx:
        await hold_authority(tx, scope)
        # An issuance holds this row until its commit, so all its Codes are visible now, and no others can follow.
        campaign = await _lock(tx, scope, campaign_id)
        await codes.lock_in_campaign(tx, scope, campaign.id, now=ctx.clock.now())
        now = ctx.clock.now()  # Read after the lock waits, so that expiry is judged when we act.
        act_id = mint(ctx.entropy, ACT_PREFIX)
        revoked_count = await codes.update_revoked_in_campaign(tx, scope, campaign, act_id=act_id, now=now)
        if campaign.status == "active":
            await campaigns.update_archived(tx, scope, campaign.id, now=now)
            campaign = replace(campaign, archived_at=now)
        await audit.record(
            tx,
            scope,
            ctx.entropy,
            "campaign.stopped",
            now=now,
            project_id=campaign.project_id,
            campaign_id=campaign_id,
            revoked_count=revoked_count,
        )
        server = await read_server(tx)
    await ctx.promotions.outlast_leases(server)
    return StopResult(campaign, revoked_count, await find_packs_valid_until(ctx, campaign))


async def summarise_campaign(ctx: Context, scope: TenantScope, campaign_id: str) -> Summary:
    """Return the campaign and the numbers of its Codes, as of one moment.

    Raises: CampaignNotFound.
    Source: API v1, "Campaigns".
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        summary = await campaigns.find_summary(tx, scope, campaign_id, now=ctx.clock.now())
    if summary is None:
        raise CampaignNotFound
    return summary


async def _lock(tx: Tx, scope: TenantScope, campaign_id: str) -> Campaign:
    campaign = await campaigns.lock(tx, scope, campaign_id)
    if campaign is None:
        raise CampaignNotFound
    return campaign


def _not_in_order(member: Literal["starts_at", "ends_at"]) -> ValidationFailed:
    must = "must be before ends_at" if member == "starts_at" else "must be after starts_at"
    return ValidationFailed(errors=(FieldError("body", f"/{member}", must),))


def _metadata(campaign: Campaign) -> dict[str, Any]:
    """Return the audit metadata of a campaign's name and schedule."""
    return {
        "name": campaign.name,
        "starts_at": campaign.starts_at and format_timestamp(campaign.starts_at),
        "ends_at": campaign.ends_at and format_timestamp(campaign.ends_at),
    }
