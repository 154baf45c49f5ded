"""What a report was asked for."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The integration whose report was requested, where it is, and the filters; None is a filter that was not set."""

    organization_id: str
    project_id: str
    integration_id: str
    campaign_id: str | None = None
    xr_id: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None
