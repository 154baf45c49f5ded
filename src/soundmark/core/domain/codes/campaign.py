"""Campaigns: what several Codes belong to, when such may be issued, and what became of them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

CampaignStatus = Literal["active", "archived"]


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign. `starts_at` None: open from the beginning; `ends_at` None: without an end."""

    id: str
    organization_id: str
    project_id: str
    name: str
    starts_at: datetime | None
    ends_at: datetime | None
    created_at: datetime
    archived_at: datetime | None

    @property
    def status(self) -> CampaignStatus:
        """Archived for good, or active."""
        return "active" if self.archived_at is None else "archived"

    def is_open(self, now: datetime) -> bool:
        """Whether its schedule allows issuance at `now`: from its start on, and before its end."""
        return (self.starts_at is None or self.starts_at <= now) and (self.ends_at is None or now < self.ends_at)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A campaign that is stopped, and how many Codes were revoked by this stop."""

    campaign: Campaign
    revoked_count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A campaign and how many Codes were issued under it, by what became of them, all at one moment."""

    campaign: Campaign
    issued_count: int
    active_count: int
    expired_count: int
    revoked_count: int
    audience_enabled_count: int
    first_issued_at: datetime | None
    last_issued_at: datetime | None


def is_in_order(starts_at: datetime | None, ends_at: datetime | None) -> bool:
    """Whether a schedule begins before it ends. One without a start or an end does."""
    return starts_at is None or ends_at is None or starts_at < ends_at
