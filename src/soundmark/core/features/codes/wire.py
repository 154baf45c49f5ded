"""What is asked about Codes, and the views of what is answered. The answered shapes are published: `soundmark.wire`."""

import json
from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from soundmark.core.domain.code import Code, ListedCode, frame_of
from soundmark.kit import base64url
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp, Wire
from soundmark.wire.xr_code import CodeDetail, CodeIssued, CodeSummary, Intent, SignedCode

Issuer = Annotated[str, StringConstraints(min_length=1, max_length=160, pattern=NO_CONTROL_CHARS)]


class AudienceChoice(Wire):
    """Whether the Code's audience is measured, and by which integration."""

    enabled: bool
    integration_id: Annotated[str | None, Field(description="Required when `enabled`, absent otherwise.")] = None

    @model_validator(mode="after")
    def _integration_goes_with_enabled(self) -> "AudienceChoice":
        if self.enabled != (self.integration_id is not None):
            raise ValueError("integration_id goes with enabled true, and only with it")
        return self


class CreateCode(Wire):
    """A Code to be issued."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "organization_id": "org_b2xkLXJhZGlvLWV4YW1w",
                    "project_id": "prj_bW9ybmluZy1zaG93LWV4",
                    "issuer": "Radio Nordlicht",
                    "expires_at": "2027-01-01T00:00:00.000Z",
                    "intent": {
                        "type": "link",
                        "action": "open",
                        "resource": {"url": "https://example.org/tonight", "title": "Tonight's programme"},
                    },
                }
            ]
        }
    )

    organization_id: str
    project_id: str
    campaign_id: str | None = None
    issuer: Issuer
    expires_at: Annotated[Timestamp, Field(description="When the Code ends; must lie in the future.")]
    intent: Intent
    audience: AudienceChoice | None = None


class CodePage(Wire):
    """Codes, newest first, without intents and signed records."""

    data: list[CodeSummary]
    next_cursor: str | None


def _summary(code: Code | ListedCode, now: datetime) -> dict[str, Any]:
    return {
        "xr_id": code.xr_id,
        "organization_id": code.organization_id,
        "project_id": code.project_id,
        "campaign_id": code.campaign_id,
        "issuer": code.issuer,
        "issued_at": code.issued_at,
        "expires_at": code.expires_at,
        "broadcast_token": code.broadcast_token,
        "broadcast_frame": frame_of(code.broadcast_token),
        "status": code.status(now),
        "revoked_at": code.revoked_at,
        "audience_enabled": code.audience_integration_id is not None,
        "audience_integration_id": code.audience_integration_id,
    }


def summary_view(code: ListedCode, now: datetime) -> CodeSummary:
    """What a list answers of one Code, its state judged at `now`."""
    return CodeSummary(**_summary(code, now))


def detail_view(code: Code, now: datetime) -> CodeDetail:
    """Everything about one Code, its state judged at `now`."""
    signed = _signed(code)
    return CodeDetail(**_summary(code, now), intent=signed.intent, signed_code=signed)


def issued_view(code: Code) -> CodeIssued:
    """Everything about one Code, as it was issued."""
    signed = _signed(code)
    return CodeIssued(**_summary(code, code.issued_at), intent=signed.intent, signed_code=signed)


def _signed(code: Code) -> SignedCode:
    members = json.loads(code.payload)
    return SignedCode(**members, signature=base64url.encode(code.signature))
