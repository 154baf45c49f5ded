"""The shapes of the answers from which exports are made, closed at every depth.

They restate what version 1 of the formats holds, independently of Core's own shapes: a release of Core that adds a
member must not change a published format unnoticed.

Source: API v1, "Console exports"; contract, sections 3, 6 and 10.
"""

from datetime import date, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp

_ENTRIES_MAX: Final = 10_000  # API v1, "Report rules", 4.
_INTEGER_MAX: Final = 2**53 - 1  # RFC 7493, section 2.2.


def _read_timestamp(value: object) -> datetime:
    if not isinstance(value, str) or format_timestamp(moment := parse_timestamp(value)) != value:
        raise ValueError("must be a time in UTC with milliseconds")
    return moment


def _read_day(value: object) -> date:
    if not isinstance(value, str) or (day := date.fromisoformat(value)).isoformat() != value:
        raise ValueError("must be a date")
    return day


Timestamp = Annotated[datetime, BeforeValidator(_read_timestamp)]
Day = Annotated[date, BeforeValidator(_read_day)]
Count = Annotated[int, Field(ge=0, le=_INTEGER_MAX)]
# Rows of zero are left out of every dimension.
Counted = Annotated[int, Field(ge=1, le=_INTEGER_MAX)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=160)]
OrganizationId = Annotated[str, StringConstraints(pattern=r"^org_[A-Za-z0-9_-]+$")]
ProjectId = Annotated[str, StringConstraints(pattern=r"^prj_[A-Za-z0-9_-]+$")]
IntegrationId = Annotated[str, StringConstraints(pattern=r"^int_[A-Za-z0-9_-]{8,}$")]
CampaignId = Annotated[str, StringConstraints(pattern=r"^cmp_[A-Za-z0-9_-]{16,}$")]
XrId = Annotated[str, StringConstraints(pattern=r"^xr_[A-Za-z0-9_-]{16,}$")]
Country = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")]
ReceiverClass = Literal["phone", "tablet", "computer", "television", "speaker", "wearable", "vehicle", "kiosk", "other"]


class Shape(BaseModel):
    """A closed, immutable, strictly typed shape."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Period(Shape):
    """From `from` up to but not including `to`."""

    from_: Annotated[Timestamp, Field(alias="from")]
    to: Timestamp


class AnsweredFilters(Shape):
    """The filters of the answer."""

    campaign_id: CampaignId | None
    xr_id: XrId | None


class DayRow(Shape):
    """A UTC day."""

    day: Day
    events: Counted
    estimated_reach: Counted


class ReceiverRow(Shape):
    """A class of receivers."""

    receiver_class: ReceiverClass
    events: Counted


class FrequencyRow(Shape):
    """The measurement tokens with the same number of events."""

    frequency: Counted
    tokens: Counted


class CampaignRow(Shape):
    """A campaign, or all Codes without one."""

    campaign_id: CampaignId | None
    events: Counted
    estimated_reach: Counted


class CodeRow(Shape):
    """A Code."""

    xr_id: XrId
    events: Counted
    estimated_reach: Counted


class CountryRow(Shape):
    """A country, or the events without one."""

    country: Country | None
    events: Counted


class IntegrityRow(Shape):
    """The repetitions of a UTC day."""

    day: Day
    event_replays: Count
    code_token_duplicates: Count
    proof_replays: Count


class IntegritySignals(Shape):
    """The repetitions of the whole integration in the period."""

    scope: Literal["integration_period"]
    event_replays: Count
    code_token_duplicates: Count
    proof_replays: Count
    by_day: Annotated[list[IntegrityRow], Field(max_length=_ENTRIES_MAX)]


class Report(Shape):
    """The answer of `GET /v1/audience/reports/{integration_id}`."""

    integration_id: IntegrationId
    mode: Literal["demo", "contract", "self_service"]
    period: Period
    filters: AnsweredFilters
    events: Count
    estimated_reach: Count
    average_frequency: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    by_day: Annotated[list[DayRow], Field(max_length=_ENTRIES_MAX)]
    by_receiver: Annotated[list[ReceiverRow], Field(max_length=_ENTRIES_MAX)]
    by_frequency: Annotated[list[FrequencyRow], Field(max_length=_ENTRIES_MAX)]
    by_campaign: Annotated[list[CampaignRow], Field(max_length=_ENTRIES_MAX)]
    by_xr_code: Annotated[list[CodeRow], Field(max_length=_ENTRIES_MAX)]
    by_country: Annotated[list[CountryRow], Field(max_length=_ENTRIES_MAX)]
    integrity_signals: IntegritySignals


class Campaign(Shape):
    """A campaign."""

    id: CampaignId
    organization_id: OrganizationId
    project_id: ProjectId
    name: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    starts_at: Timestamp | None
    ends_at: Timestamp | None
    status: Literal["active", "archived"]
    created_at: Timestamp
    archived_at: Timestamp | None


class CampaignCounts(Shape):
    """The Codes of a campaign by status."""

    issued: Count
    active: Count
    expired: Count
    revoked: Count
    audience_enabled: Count


class CampaignSummary(Shape):
    """The answer of `GET /v1/campaigns/{campaign_id}/summary`."""

    campaign: Campaign
    counts: CampaignCounts
    first_issued_at: Timestamp | None
    last_issued_at: Timestamp | None


class Intent(Shape):
    """What a receiver is asked to do."""

    type: Label
    action: Label
    resource: dict[str, Any]


class Policy(Shape):
    """Whether the audience of a Code is measured, and for which integration."""

    audience_measurement: bool
    audience_integration_id: IntegrationId | None


class SignedCode(Shape):
    """The record that Core signed."""

    version: Annotated[int, Field(ge=1, le=1)]
    xr_id: XrId
    organization_id: OrganizationId
    project_id: ProjectId
    campaign_id: CampaignId | None
    issuer: Label
    issued_at: Timestamp
    expires_at: Timestamp
    intent: Intent
    policy: Policy
    token_digest: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
    key_id: Label
    signature: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{86}$")]


class Code(Shape):
    """The answer of `GET /v1/codes/{xr_id}`."""

    xr_id: XrId
    organization_id: OrganizationId
    project_id: ProjectId
    campaign_id: CampaignId | None
    issuer: Label
    issued_at: Timestamp
    expires_at: Timestamp
    broadcast_token: Annotated[str, StringConstraints(pattern=r"^brd_[A-Za-z0-9_-]{16}$")]
    broadcast_frame: Annotated[str, StringConstraints(pattern=r"^XRC1:brd_[A-Za-z0-9_-]{16}$")]
    status: Literal["active", "expired", "revoked"]
    revoked_at: Timestamp | None
    audience_enabled: bool
    audience_integration_id: IntegrationId | None
    intent: Intent
    signed_code: SignedCode
