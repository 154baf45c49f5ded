"""The signed Code and its views."""

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from soundmark.wire.shape import (
    BroadcastFrame,
    BroadcastToken,
    CampaignId,
    Digest,
    IntegrationId,
    KeyId,
    Label,
    Signature,
    Timestamp,
    Wire,
    XrId,
)

OrganizationId = Annotated[str, StringConstraints(pattern=r"^org_[A-Za-z0-9_-]+$")]
ProjectId = Annotated[str, StringConstraints(pattern=r"^prj_[A-Za-z0-9_-]+$")]

_INTENT_EXAMPLE: Final[JsonDict] = {
    "examples": [
        {
            "type": "link",
            "action": "open",
            "resource": {"url": "https://example.org/tonight", "title": "Tonight's programme"},
        }
    ]
}


class Intent(Wire):
    """The action requested of a receiver. At most 32 levels deep, and at most 16 KiB in canonical form."""

    model_config = ConfigDict(json_schema_extra=_INTENT_EXAMPLE)

    type: Label
    action: Label
    resource: dict[str, Any]


class Policy(Wire):
    """Whether the audience is measured, and by which integration."""

    audience_measurement: bool
    audience_integration_id: IntegrationId | None


class SignedCode(Wire):
    """The immutable record that Core signed. `signature` is Ed25519 over the RFC 8785 bytes of all other members."""

    version: Literal[1]
    xr_id: XrId
    organization_id: OrganizationId
    project_id: ProjectId
    campaign_id: CampaignId | None
    issuer: Label
    issued_at: Timestamp
    expires_at: Timestamp
    intent: Intent
    policy: Policy
    token_digest: Annotated[Digest, Field(description="SHA-256 of the broadcast token, base64url.")]
    key_id: KeyId
    signature: Signature


class CodeSummary(Wire):
    """A Code as it appears in a list, without its intent or its signed record."""

    xr_id: XrId
    organization_id: OrganizationId
    project_id: ProjectId
    campaign_id: CampaignId | None
    issuer: Label
    issued_at: Timestamp
    expires_at: Timestamp
    broadcast_token: BroadcastToken
    broadcast_frame: BroadcastFrame
    status: Literal["active", "expired", "revoked"]
    revoked_at: Timestamp | None
    audience_enabled: bool
    audience_integration_id: IntegrationId | None


class CodeWithIntent(CodeSummary):
    """A Code as it appears in a list that includes the intents."""

    intent: Intent


class CodeDetail(CodeWithIntent):
    """A Code with its intent and its signed record."""

    signed_code: SignedCode


class CodeIssued(CodeDetail):
    """A Code at the moment of its issuance."""

    status: Literal["active"]
    revoked_at: None
