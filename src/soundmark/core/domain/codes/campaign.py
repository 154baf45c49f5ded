"""Campaigns: groups of Codes with an optional schedule."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

CampaignStatus = Literal["active", "archived"]


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign. If `starts_at` is None, it is open from the beginning; if `ends_at` is None, it has no end."""

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
        """The status: active, or archived, which is final."""
        return "active" if self.archived_at is None else "archived"

    def is_open(self, now: datetime) -> bool:
        """Return whether the schedule allows issuance at `now`: at or after its start, and before its end."""
        return (self.starts_at is None or self.starts_at <= now) and (self.ends_at is None or now < self.ends_at)


@dataclass(frozen=True, slots=True)
class StopResult:
    """A stopped campaign, how many Codes this stop revoked, and the end of the offline packs that still name some."""

    campaign: Campaign
    revoked_count: int
    packs_valid_until: datetime | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A campaign and the numbers of its Codes by status, all from the same point in time."""

    campaign: Campaign
    issued_count: int
    active_count: int
    expired_count: int
    revoked_count: int
    audience_enabled_count: int
    first_issued_at: datetime | None
    last_issued_at: datetime | None


def is_in_order(starts_at: datetime | None, ends_at: datetime | None) -> bool:
    """Return whether a schedule begins before it ends, or has no start or no end."""
    return starts_at is None or ends_at is None or starts_at < ends_at
