"""What a playout agent knows of Codes and campaigns."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from soundmark_sdk.client import Intent

# `gone` is a Code that the service does not have any more.
CodeStatus: TypeAlias = Literal["active", "expired", "revoked", "gone"]


@dataclass(frozen=True, slots=True)
class SourceCode:
    """A Code that was named to the agent: it sounds itself, or Codes with its intent do, one after the other."""

    xr_id: str
    frame: str = field(repr=False)
    organization_id: str
    project_id: str
    campaign_id: str | None
    issuer: str
    integration_id: str | None
    expires_at: datetime
    intent: Intent


@dataclass(frozen=True, slots=True)
class HeldCode:
    """A short-lived Code, issued for one slot of time, which ends before the Code expires."""

    xr_id: str
    frame: str = field(repr=False)
    organization_id: str
    project_id: str
    slot: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class CampaignState:
    """What of a campaign decides whether its Codes sound."""

    starts_at: datetime | None
    ends_at: datetime | None
    is_archived: bool


@dataclass(frozen=True, slots=True)
class Sounding:
    """A Code that may sound, and until when."""

    xr_id: str
    frame: str = field(repr=False)
    until: datetime


@dataclass(frozen=True, slots=True)
class WantedCode:
    """A Code to issue: with the intent of `source`, for one slot of the line at `line`."""

    line: int
    slot: int
    source: SourceCode
    expires_at: datetime
