"""Codes and campaigns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from soundmark_sdk.client.records.record import Record, Status
from soundmark_sdk.records import Intent


@dataclass(frozen=True, slots=True)
class ListedCode(Record):
    """A Code in a list. Its token is for broadcasting, not for logs.

    The intent is None unless the list includes intents. The service verified it.
    """

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
    intent: Intent | None = field(default=None, kw_only=True)


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
class DecodeCertificate(Record):
    """What somebody measured of a Code, as the service signed it.

    Pass its `document` to `soundmark_sdk.verify_decode_certificate`.
    """

    certificate_id: str
    xr_id: str
    organization_id: str
    issued_at: datetime
    measured: Mapping[str, Any] = field(repr=False)
    key_id: str
    signature: str


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
    """A campaign after an emergency stop, and the number of Codes that the stop revoked.

    Until `packs_valid_until`, receivers without a network may still answer from offline packs; None without any.
    """

    campaign: Campaign
    revoked_count: int
    packs_valid_until: datetime | None


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
