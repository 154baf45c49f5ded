"""The public view of campaigns."""

from soundmark.core.domain.codes.campaign import CampaignStatus
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
