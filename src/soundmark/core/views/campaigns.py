"""The public view of campaigns."""

from soundmark.core.domain.codes.campaign import Campaign, CampaignStatus
from soundmark.wire.shape import Timestamp, Wire


class CampaignView(Wire):
    """A campaign."""

    id: str
    organization_id: str
    project_id: str
    name: str
    starts_at: Timestamp | None
    ends_at: Timestamp | None
    status: CampaignStatus
    created_at: Timestamp
    archived_at: Timestamp | None


def campaign_view(campaign: Campaign) -> CampaignView:
    """Return the view of one campaign."""
    return CampaignView(
        id=campaign.id,
        organization_id=campaign.organization_id,
        project_id=campaign.project_id,
        name=campaign.name,
        starts_at=campaign.starts_at,
        ends_at=campaign.ends_at,
        status=campaign.status,
        created_at=campaign.created_at,
        archived_at=campaign.archived_at,
    )
