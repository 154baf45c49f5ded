"""What the service answers, as immutable records. A member that this release does not know is in `document` only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from soundmark_sdk.records import Intent
from soundmark_sdk.strict_json import JsonValue

Role: TypeAlias = Literal["owner", "admin", "member", "billing"]
KeyScope: TypeAlias = Literal["audience:read", "audience:write", "codes:read", "codes:write"]
Status: TypeAlias = Literal["active", "expired", "revoked"]
AudienceMode: TypeAlias = Literal["demo", "contract", "self_service"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The base of all of them. `document` is the JSON object as it was answered, members of later releases included."""

    document: Mapping[str, JsonValue] = field(repr=False, compare=False)


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """One page of a list, newest first; `next_cursor` is None on the last."""

    data: tuple[R, ...]
    next_cursor: str | None
    document: Mapping[str, JsonValue] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Caller(Record):
    """Who a credential stands for. The two ids and `scopes` are those of a server key; a person has an `email`."""

    type: Literal["user", "api_key", "operator"]
    id: str
    email: str | None
    organization_id: str | None
    project_id: str | None
    scopes: tuple[KeyScope, ...] | None
    mfa: bool
    platform_admin: bool


@dataclass(frozen=True, slots=True)
class Organization(Record):
    """An organisation; `role` is the caller's in it."""

    id: str
    name: str
    role: Role
    created_at: datetime
    deletion_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class Project(Record):
    """A project of an organisation."""

    id: str
    organization_id: str
    name: str
    created_at: datetime
    deletion_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiKey(Record):
    """A server key of one project, without its secret."""

    id: str
    organization_id: str
    project_id: str
    scopes: tuple[KeyScope, ...]
    status: Status
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    secret_rotated_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiKeyWithSecret(ApiKey):
    """A server key with its secret, which the service shows this once."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Member(Record):
    """A person's part in an organisation."""

    subject_id: str
    email: str
    role: Role
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Invitation(Record):
    """An invitation, without its secret."""

    id: str
    organization_id: str
    email: str
    role: Role
    status: Literal["pending", "accepted", "expired", "revoked"]
    delivery_status: Literal["pending", "processing", "sent", "cancelled", "dead", "unavailable"]
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class InvitationWithSecret(Invitation):
    """A new invitation with its secret, which the service shows this once."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Joined(Record):
    """The organisation that the caller belongs to now, and as what."""

    organization_id: str
    role: Role


@dataclass(frozen=True, slots=True)
class AuditActor(Record):
    """Who did it: `type` is user, api_key, system or platform."""

    type: str
    id: str


@dataclass(frozen=True, slots=True)
class AuditEntry(Record):
    """What somebody did in an organisation. Later releases know more actions."""

    id: str
    organization_id: str
    project_id: str | None
    action: str
    actor: AuditActor
    outcome: Literal["requested", "completed", "failed"]
    metadata: Mapping[str, Any]
    created_at: datetime
    finalised_at: datetime | None


@dataclass(frozen=True, slots=True)
class AuditVerification(Record):
    """Whether the audit log is what was written; `first_broken` is None where it is, or where none can be named."""

    verified: bool
    entries: int
    unsealed: int
    first_broken: str | None


@dataclass(frozen=True, slots=True)
class ListedCode(Record):
    """A Code as lists show it. The token is for the air, not for logs."""

    xr_id: str
    organization_id: str
    project_id: str
    campaign_id: str | None
    issuer: str
    issued_at: datetime
    expires_at: datetime
    broadcast_token: str = field(repr=False)
    broadcast_frame: str = field(repr=False)
    status: Status
    revoked_at: datetime | None
    audience_enabled: bool
    audience_integration_id: str | None


@dataclass(frozen=True, slots=True)
class Code(ListedCode):
    """A Code with its intent and the `xr-code-v1` object, which `soundmark_sdk.verify_signed_code` verifies."""

    intent: Intent
    signed_code: Mapping[str, JsonValue] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CodeBatch(Record):
    """The Codes of one batch, all of which were issued together."""

    data: tuple[Code, ...]


@dataclass(frozen=True, slots=True)
class DryRun(Record):
    """What an issuance would come to now: `code` is the problem's, or None where it would succeed."""

    would_issue: bool
    code: str | None
    quota_remaining: int


@dataclass(frozen=True, slots=True)
class RevokedBatch(Record):
    """How many Codes a batch revocation was asked for, revoked, and found revoked or expired."""

    requested_count: int
    revoked_count: int
    unchanged_count: int


@dataclass(frozen=True, slots=True)
class Campaign(Record):
    """A campaign; without dates it is open from the beginning, or without an end."""

    id: str
    organization_id: str
    project_id: str
    name: str
    starts_at: datetime | None
    ends_at: datetime | None
    status: Literal["active", "archived"]
    created_at: datetime
    archived_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoppedCampaign(Record):
    """A campaign after an emergency stop, and how many Codes that revoked."""

    campaign: Campaign
    revoked_count: int


@dataclass(frozen=True, slots=True)
class CampaignCounts(Record):
    """The Codes of a campaign by their state now: issued = active + expired + revoked."""

    issued: int
    active: int
    expired: int
    revoked: int
    audience_enabled: int


@dataclass(frozen=True, slots=True)
class CampaignSummary(Record):
    """A campaign and its Codes, counted at one moment."""

    campaign: Campaign
    counts: CampaignCounts
    first_issued_at: datetime | None
    last_issued_at: datetime | None


@dataclass(frozen=True, slots=True)
class CodesUsage(Record):
    """The Codes of the month."""

    issued: int
    monthly_quota: int
    remaining: int


@dataclass(frozen=True, slots=True)
class AudienceModeUsage(Record):
    """The measured events of the month in one entitlement mode; without a quota where none is set."""

    mode: str
    events: int
    active_integrations: int
    monthly_quota: int | None


@dataclass(frozen=True, slots=True)
class AudienceUsage(Record):
    """The Audience part; empty while that component does not answer."""

    status: Literal["available", "unavailable"]
    modes: tuple[AudienceModeUsage, ...]


@dataclass(frozen=True, slots=True)
class Usage(Record):
    """What an organisation used this calendar month (UTC), such as 2026-11."""

    organization_id: str
    month: str
    codes: CodesUsage
    audience: AudienceUsage


@dataclass(frozen=True, slots=True)
class Integration(Record):
    """An Audience integration, without its secret. `core_key_id` is the key of Core's that it trusts."""

    id: str
    organization_id: str
    project_id: str
    mode: AudienceMode
    retention_days: int
    status: Literal["active", "revoked"]
    core_key_id: str
    created_at: datetime
    secret_rotated_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class IntegrationWithSecret(Integration):
    """An integration with its HMAC secret, which the service shows this once."""

    hmac_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChangedRetention(Record):
    """What another retention changed, and exactly how much was deleted."""

    integration_id: str
    previous_retention_days: int
    retention_days: int
    deleted_events: int
    deleted_integrity_days: int


@dataclass(frozen=True, slots=True)
class ReplacedCoreKey(Record):
    """The key of Core's that an integration trusts now."""

    integration_id: str
    core_key_id: str


@dataclass(frozen=True, slots=True)
class ReportPeriod(Record):
    """Up to `to`, which is not a part of it; `document` has the other end, whose name Python has taken."""

    to: datetime


@dataclass(frozen=True, slots=True)
class DayCounts(Record):
    """A UTC day, such as 2026-11-20."""

    day: str
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class ReceiverCount(Record):
    """A class of receivers."""

    receiver_class: str
    events: int


@dataclass(frozen=True, slots=True)
class FrequencyCount(Record):
    """How many measurement tokens have exactly so many events."""

    frequency: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ReportedCampaign(Record):
    """A campaign; None are the Codes that belong to none."""

    campaign_id: str | None
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class XrCodeCounts(Record):
    """A Code."""

    xr_id: str
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class CountryCount(Record):
    """A country; None where none was named."""

    country: str | None
    events: int


@dataclass(frozen=True, slots=True)
class IntegrityDay(Record):
    """What was not counted twice on a UTC day of receipt."""

    day: str
    event_replays: int
    code_token_duplicates: int
    proof_replays: int


@dataclass(frozen=True, slots=True)
class IntegritySignals(Record):
    """Of the whole days that the period touches, and of the whole integration whatever filters."""

    scope: str
    event_replays: int
    code_token_duplicates: int
    proof_replays: int
    by_day: tuple[IntegrityDay, ...]


@dataclass(frozen=True, slots=True)
class AudienceReport(Record):
    """What an integration measured in a period."""

    integration_id: str
    mode: str
    period: ReportPeriod
    events: int
    estimated_reach: int
    average_frequency: float | int
    by_day: tuple[DayCounts, ...]
    by_receiver: tuple[ReceiverCount, ...]
    by_frequency: tuple[FrequencyCount, ...]
    by_campaign: tuple[ReportedCampaign, ...]
    by_xr_code: tuple[XrCodeCounts, ...]
    by_country: tuple[CountryCount, ...]
    integrity_signals: IntegritySignals


@dataclass(frozen=True, slots=True)
class LegacyDay(Record):
    """A UTC day of the time before XR v1."""

    day: str
    events: int


@dataclass(frozen=True, slots=True)
class LegacyReport(Record):
    """Daily aggregates that nobody verified, and whose reach cannot be compared."""

    label: str
    reach_comparable_to_xr_v1: bool
    by_day: tuple[LegacyDay, ...]
    events: int


@dataclass(frozen=True, slots=True)
class SecretStatus(Record):
    """Whether a credential is configured; what it is, nobody is told."""

    configured: bool
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Setting(Record):
    """What holds, and who says so."""

    value: str | int | float | bool | None
    source: Literal["database", "environment", "default"]
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlatformSettings(Record):
    """Everything that an administrator of the platform may set, by name."""

    secrets: Mapping[str, SecretStatus]
    configuration: Mapping[str, Setting]
