"""The answers of the service, as immutable records. Members that this release does not know are only in `document`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from soundmark_sdk.records import Intent

Role: TypeAlias = Literal["owner", "admin", "member", "billing"]
KeyScope: TypeAlias = Literal["audience:read", "audience:write", "codes:read", "codes:write"]
Status: TypeAlias = Literal["active", "expired", "revoked"]
AudienceMode: TypeAlias = Literal["demo", "contract", "self_service"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The base of every record. `document` is the whole JSON object, with the members of later releases."""

    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """One page of a list, newest first; `next_cursor` is None on the last."""

    data: tuple[R, ...]
    next_cursor: str | None
    document: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Caller(Record):
    """The caller that a credential belongs to. A server key has two ids and `scopes`; a person has an `email`."""

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
    """An organisation, with the caller's role in it."""

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
    """A server key with its secret, which the service shows only once."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Member(Record):
    """A member of an organisation."""

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
    """A new invitation with its secret, which the service shows only once."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Joined(Record):
    """The organisation that the caller has joined, and the caller's role in it."""

    organization_id: str
    role: Role


@dataclass(frozen=True, slots=True)
class AuditActor(Record):
    """The author of an audit entry; `type` is user, api_key, system or platform."""

    type: str
    id: str


@dataclass(frozen=True, slots=True)
class AuditEntry(Record):
    """An action in an organisation. Later releases of the service have more actions."""

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
    """Whether the audit log is unaltered. `first_broken` is the first altered entry, if there is one to name."""

    verified: bool
    entries: int
    unsealed: int
    first_broken: str | None


@dataclass(frozen=True, slots=True)
class ListedCode(Record):
    """A Code in a list. Its token is for broadcasting, not for logs."""

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
    """A Code with its intent and its `xr-code-v1` object, which `soundmark_sdk.verify_signed_code` verifies."""

    intent: Intent
    signed_code: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CodeBatch(Record):
    """The Codes of one batch, which were issued together."""

    data: tuple[Code, ...]


@dataclass(frozen=True, slots=True)
class DryRun(Record):
    """The result that an issuance would have now: `code` is that of the problem, or None for success."""

    would_issue: bool
    code: str | None
    quota_remaining: int


@dataclass(frozen=True, slots=True)
class RevokedBatch(Record):
    """The numbers of Codes that a batch revocation received, revoked, and found already revoked or expired."""

    requested_count: int
    revoked_count: int
    unchanged_count: int


@dataclass(frozen=True, slots=True)
class Campaign(Record):
    """A campaign. Without `starts_at` it is open at once, and without `ends_at` it stays open."""

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
    """A campaign after an emergency stop, and the number of Codes that the stop revoked."""

    campaign: Campaign
    revoked_count: int


@dataclass(frozen=True, slots=True)
class CampaignCounts(Record):
    """The Codes of a campaign by their current state: issued = active + expired + revoked."""

    issued: int
    active: int
    expired: int
    revoked: int
    audience_enabled: int


@dataclass(frozen=True, slots=True)
class CampaignSummary(Record):
    """A campaign and the counts of its Codes at one moment."""

    campaign: Campaign
    counts: CampaignCounts
    first_issued_at: datetime | None
    last_issued_at: datetime | None


@dataclass(frozen=True, slots=True)
class CodesUsage(Record):
    """The Codes issued this month."""

    issued: int
    monthly_quota: int
    remaining: int


@dataclass(frozen=True, slots=True)
class AudienceModeUsage(Record):
    """The events of this month in one entitlement mode. `monthly_quota` is None without a quota."""

    mode: str
    events: int
    active_integrations: int
    monthly_quota: int | None


@dataclass(frozen=True, slots=True)
class AudienceUsage(Record):
    """The usage of Audience, empty while that component is unavailable."""

    status: Literal["available", "unavailable"]
    modes: tuple[AudienceModeUsage, ...]


@dataclass(frozen=True, slots=True)
class Usage(Record):
    """An organisation's usage in a calendar month (UTC), such as 2026-11."""

    organization_id: str
    month: str
    codes: CodesUsage
    audience: AudienceUsage


@dataclass(frozen=True, slots=True)
class Integration(Record):
    """An Audience integration, without its secret. `core_key_id` names the key of Core that it trusts."""

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
    """An integration with its HMAC secret, which the service shows only once."""

    hmac_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChangedRetention(Record):
    """A change of retention, and exactly how much it deleted."""

    integration_id: str
    previous_retention_days: int
    retention_days: int
    deleted_events: int
    deleted_integrity_days: int


@dataclass(frozen=True, slots=True)
class ReplacedCoreKey(Record):
    """The key of Core that an integration trusts now."""

    integration_id: str
    core_key_id: str


@dataclass(frozen=True, slots=True)
class ReportPeriod(Record):
    """The period of a report, up to but not including `to`. `document` has `from`, which is a keyword of Python."""

    to: datetime


@dataclass(frozen=True, slots=True)
class DayCounts(Record):
    """The counts of a UTC day, such as 2026-11-20."""

    day: str
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class ReceiverCount(Record):
    """The events of one class of receivers."""

    receiver_class: str
    events: int


@dataclass(frozen=True, slots=True)
class FrequencyCount(Record):
    """The number of measurement tokens with exactly `frequency` events."""

    frequency: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ReportedCampaign(Record):
    """The counts of a campaign, or of all Codes without a campaign (None)."""

    campaign_id: str | None
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class XrCodeCounts(Record):
    """The counts of a Code."""

    xr_id: str
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class CountryCount(Record):
    """The events of a country, or those without a country (None)."""

    country: str | None
    events: int


@dataclass(frozen=True, slots=True)
class IntegrityDay(Record):
    """The repetitions that were received on a UTC day and not counted."""

    day: str
    event_replays: int
    code_token_duplicates: int
    proof_replays: int


@dataclass(frozen=True, slots=True)
class IntegritySignals(Record):
    """The repetitions on all days that the period touches, for the whole integration, whatever the filters."""

    scope: str
    event_replays: int
    code_token_duplicates: int
    proof_replays: int
    by_day: tuple[IntegrityDay, ...]


@dataclass(frozen=True, slots=True)
class AudienceReport(Record):
    """The report of an integration about a period."""

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
    """The events of a UTC day before XR v1."""

    day: str
    events: int


@dataclass(frozen=True, slots=True)
class LegacyReport(Record):
    """Daily totals from before XR v1. Nobody verified them, and their reach cannot be compared."""

    label: str
    reach_comparable_to_xr_v1: bool
    by_day: tuple[LegacyDay, ...]
    events: int


@dataclass(frozen=True, slots=True)
class SecretStatus(Record):
    """Whether a credential is configured. Its value is never shown."""

    configured: bool
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Setting(Record):
    """The current value of a setting, and its source."""

    value: str | int | float | bool | None
    source: Literal["database", "environment", "default"]
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlatformSettings(Record):
    """All settings of the platform, by name."""

    secrets: Mapping[str, SecretStatus]
    configuration: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class ClosureBlocker(Record):
    """A reason why a deletion would be refused: the code of the problem, and the ids of what stands in the way."""

    code: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosurePreflight(Record):
    """The result that a deletion would have now, and the id that its certificate would have.

    `deletes` has the number of each kind of record; None if Audience cannot be asked.
    """

    can_delete: bool
    blockers: tuple[ClosureBlocker, ...]
    deletes: Mapping[str, int | None]
    certificate_id: str
    deletion_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeletedSubject(Record):
    """The project or organisation that was deleted."""

    type: Literal["organization", "project"]
    id: str
    organization_id: str


@dataclass(frozen=True, slots=True)
class DeletionCertificate(Record):
    """The service's statement about a deletion. Pass its `document` to `soundmark_sdk.verify_certificate`.

    `deleted` and `remaining` hold, for each component, the number of each kind of record.
    """

    certificate_id: str
    subject: DeletedSubject
    requested_at: datetime
    completed_at: datetime
    deleted: Mapping[str, Mapping[str, int]]
    remaining: Mapping[str, Mapping[str, int]]
    key_id: str
    signature: str
