"""The request and response shapes of issuance."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from pydantic import ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from soundmark.core.domain.codes.code import Code, frame_of
from soundmark.core.domain.codes.issue_request import BATCH_MAX
from soundmark.core.domain.codes.receipt import IssuanceRoute
from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.core.edge.ids import UnboundedId
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp, Wire
from soundmark.wire.xr_code import CodeIssued, Intent

Issuer = Annotated[str, StringConstraints(min_length=1, max_length=160, pattern=NO_CONTROL_CHARS)]


def _integration_when_enabled(schema: dict[str, Any]) -> None:
    schema["if"] = {"properties": {"enabled": {"const": True}}}
    schema["then"] = {"required": ["integration_id"], "properties": {"integration_id": {"type": "string"}}}
    schema["else"] = {"properties": {"integration_id": {"type": "null"}}}


class AudienceChoice(Wire):
    """Whether the Code's audience is measured, and by which integration."""

    model_config = ConfigDict(json_schema_extra=_integration_when_enabled)

    enabled: bool
    integration_id: Annotated[
        str | None, Field(description="Required if `enabled` is true, otherwise absent or null.")
    ] = None

    @model_validator(mode="after")
    def _integration_goes_with_enabled(self) -> "AudienceChoice":
        if self.enabled != (self.integration_id is not None):
            raise ValueError("integration_id is required if enabled is true, and not allowed otherwise")
        return self


_CODE: Final[JsonDict] = {
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


class CreateCode(Wire):
    """A Code to issue."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CODE]})

    organization_id: str
    project_id: UnboundedId
    campaign_id: UnboundedId | None = None
    issuer: Issuer
    expires_at: Annotated[Timestamp, Field(description="When the Code expires. Must be in the future.")]
    intent: Intent
    audience: AudienceChoice | None = None


class CreateCodes(CreateCode):
    """Codes that differ only in their ids and tokens. Either all are issued or none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_CODE, "count": 12}]})

    count: Annotated[int, Field(ge=1, le=BATCH_MAX, description="The number of Codes to issue.")]


class IssuedCodes(Wire):
    """The Codes of one batch."""

    data: list[CodeIssued]


class Verdict(Wire):
    """Whether an issuance would succeed now."""

    would_issue: bool
    code: Annotated[
        str | None, Field(description="The code of the problem that would be returned; null if it would succeed.")
    ]
    quota_remaining: Annotated[int, Field(ge=0, description="The number of Codes that can still be issued this month.")]


def render_response(issued: Sequence[Code], route: IssuanceRoute) -> bytes:
    """Return the response to an issuance, `CodeIssued` or `IssuedCodes`, from the bytes that were signed."""
    shared = _shared_members(issued[0])
    codes = [_render_code(code, shared) for code in issued]
    return msgspec.json.encode(codes[0] if route == "single" else {"data": codes})


def _shared_members(code: Code) -> dict[str, Any]:
    """Return the members that all Codes of one issuance share."""
    facts = read_facts(code.payload)
    assert facts is not None, "we signed it a moment ago"
    return {
        "organization_id": code.organization_id,
        "project_id": code.project_id,
        "campaign_id": code.campaign_id,
        "issuer": code.issuer,
        "issued_at": format_timestamp(code.issued_at),
        "expires_at": format_timestamp(code.expires_at),
        "status": "active",
        "revoked_at": None,
        "audience_enabled": code.audience_integration_id is not None,
        "audience_integration_id": code.audience_integration_id,
        "intent": facts.intent,
    }


def _render_code(code: Code, shared: dict[str, Any]) -> dict[str, Any]:
    signature = b',"signature":"' + base64url.encode(code.signature).encode("ascii") + b'"}'
    return {
        "xr_id": code.xr_id,
        **shared,
        "broadcast_token": code.broadcast_token,
        "broadcast_frame": frame_of(code.broadcast_token),
        "signed_code": msgspec.Raw(code.payload[:-1] + signature),
    }
