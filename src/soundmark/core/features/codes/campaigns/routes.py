"""The routes of campaigns."""

from http import HTTPStatus
from typing import Annotated, cast

from fastapi import Path, Query

from soundmark.core.domain.codes.campaign import StopResult
from soundmark.core.edge.examples import CAMPAIGN
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant
from soundmark.core.features.codes.campaigns import example, service
from soundmark.core.features.codes.campaigns.wire import (
    CampaignPage,
    CreateCampaign,
    StoppedView,
    SummaryView,
    UpdateCampaign,
    stopped_view,
    summary_view,
)
from soundmark.core.problems import (
    CampaignArchived,
    CampaignNameConflict,
    CampaignNotFound,
    ProjectNotFound,
    ResourceDeletionInProgress,
)
from soundmark.core.views.campaigns import CampaignView
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.wire.private.problems import OrganizationSuspended

operations = Operations("Campaigns")

CampaignIdPath = Annotated[ResourceId, Path(description="The campaign's id.", examples=["cmp_c3VtbWVyLWZlc3RpdmFsLX"])]


@operations.add(
    "POST",
    "/v1/campaigns",
    Operation(
        "campaign.create",
        tenant="body",
        problems=(ProjectNotFound, CampaignNameConflict, ResourceDeletionInProgress, OrganizationSuspended),
    ),
    status=HTTPStatus.CREATED,
    example=CampaignView.from_record(CAMPAIGN),
)
async def create_campaign(ctx: Ctx, scope: Tenant, body: CreateCampaign) -> CampaignView:
    """Create a campaign in a project."""
    campaign = service.NewCampaign(body.project_id, body.name, body.starts_at, body.ends_at)
    return CampaignView.from_record(await service.create_campaign(ctx, scope, campaign))


@operations.add(
    "GET",
    "/v1/campaigns",
    Operation("campaign.list", problems=(ProjectNotFound, InvalidCursor)),
    example=CampaignPage(data=[CampaignView.from_record(CAMPAIGN)], next_cursor=None),
)
async def list_campaigns(
    ctx: Ctx,
    scope: Tenant,
    project_id: Annotated[ResourceId, Query(description="The project whose campaigns are listed.")],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> CampaignPage:
    """List the campaigns of a project, newest first, including archived ones."""
    cursors = ctx.cursors.bind("campaigns", organization_id=scope.organization_id, project_id=project_id)
    page = await service.list_campaigns(ctx, scope, project_id, before=cursors.read(cursor), limit=limit)
    return cursors.show(CampaignPage, page, CampaignView.from_record)


@operations.add(
    "PATCH",
    "/v1/campaigns/{campaign_id}",
    Operation("campaign.update", problems=(CampaignNotFound, CampaignArchived, CampaignNameConflict)),
    example=CampaignView.from_record(CAMPAIGN),
)
async def update_campaign(
    ctx: Ctx,
    scope: Tenant,
    campaign_id: CampaignIdPath,
    body: UpdateCampaign,
) -> CampaignView:
    """Change a campaign's name or schedule. Codes that were issued already are not affected."""
    return CampaignView.from_record(await service.update_campaign(ctx, scope, campaign_id, _changes_of(body)))


@operations.add(
    "POST",
    "/v1/campaigns/{campaign_id}/archive",
    Operation("campaign.archive", problems=(CampaignNotFound,)),
    example=CampaignView.from_record(example.ARCHIVED),
)
async def archive_campaign(ctx: Ctx, scope: Tenant, campaign_id: CampaignIdPath) -> CampaignView:
    """Archive a campaign. No more Codes can be issued under it; existing Codes are not affected."""
    return CampaignView.from_record(await service.archive_campaign(ctx, scope, campaign_id))


@operations.add(
    "POST",
    "/v1/campaigns/{campaign_id}/stop",
    Operation("campaign.stop", problems=(CampaignNotFound,)),
    example=stopped_view(StopResult(example.ARCHIVED, revoked_count=60, packs_valid_until=None)),
)
async def stop_campaign(ctx: Ctx, scope: Tenant, campaign_id: CampaignIdPath) -> StoppedView:
    """Stop a campaign in an emergency: archive it and revoke all its active Codes together."""
    return stopped_view(await service.stop_campaign(ctx, scope, campaign_id))


@operations.add(
    "GET",
    "/v1/campaigns/{campaign_id}/summary",
    Operation("campaign.summarise", problems=(CampaignNotFound,)),
    example=summary_view(example.SUMMARY),
)
async def summarise_campaign(ctx: Ctx, scope: Tenant, campaign_id: CampaignIdPath) -> SummaryView:
    """Count the Codes of a campaign by status, all at the same point in time."""
    return summary_view(await service.summarise_campaign(ctx, scope, campaign_id))


def _changes_of(body: UpdateCampaign) -> service.Changes:
    """Return the members that are present in the body. Null clears a date; absence leaves it unchanged."""
    return cast("service.Changes", {name: getattr(body, name) for name in body.model_fields_set})
