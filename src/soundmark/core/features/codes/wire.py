"""What is asked about Codes, and the views of what is answered. The answered shapes are published: `soundmark.wire`."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from pydantic import AfterValidator, ConfigDict, FailFast, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from soundmark.core.channel.audio import Protocol
from soundmark.core.domain.code import Code, ListedCode, frame_of
from soundmark.core.domain.signed_facts import read_facts
from soundmark.core.features.codes.issuance import BATCH_MAX
from soundmark.kit import base64url
from soundmark.kit.timestamps import format_timestamp
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp, Wire
from soundmark.wire.xr_code import CodeDetail, CodeIssued, CodeSummary, Intent, SignedCode

Issuer = Annotated[str, StringConstraints(min_length=1, max_length=160, pattern=NO_CONTROL_CHARS)]


def _integration_when_enabled(schema: dict[str, Any]) -> None:
    schema["if"] = {"properties": {"enabled": {"const": True}}}
    schema["then"] = {"required": ["integration_id"], "properties": {"integration_id": {"type": "string"}}}
    schema["else"] = {"properties": {"integration_id": {"type": "null"}}}


class AudienceChoice(Wire):
    """Whether the Code's audience is measured, and by which integration."""

    model_config = ConfigDict(json_schema_extra=_integration_when_enabled)

    enabled: bool
    integration_id: Annotated[str | None, Field(description="Required when `enabled`, absent or null otherwise.")] = (
        None
    )

    @model_validator(mode="after")
    def _integration_goes_with_enabled(self) -> "AudienceChoice":
        if self.enabled != (self.integration_id is not None):
            raise ValueError("integration_id goes with enabled true, and only with it")
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
    """A Code to be issued."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CODE]})

    organization_id: str
    project_id: str
    campaign_id: str | None = None
    issuer: Issuer
    expires_at: Annotated[Timestamp, Field(description="When the Code ends; must lie in the future.")]
    intent: Intent
    audience: AudienceChoice | None = None


class CreateCodes(CreateCode):
    """Codes that differ in nothing but their ids and tokens: all of them are issued, or none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_CODE, "count": 12}]})

    count: Annotated[int, Field(ge=1, le=BATCH_MAX, description="How many Codes.")]


class IssuedCodes(Wire):
    """The Codes of one batch."""

    data: list[CodeIssued]


class Verdict(Wire):
    """Whether an issuance would be carried out at this moment."""

    would_issue: bool
    code: Annotated[str | None, Field(description="The problem's code, where it would be refused.")]
    quota_remaining: Annotated[int, Field(ge=0, description="Codes that may still be issued this month.")]


def _unique(xr_ids: list[str]) -> list[str]:
    if len(set(xr_ids)) < len(xr_ids):
        raise ValueError("each id must stand there once")
    return xr_ids


SELECTION_MAX: Final = 100  # API v1, "Limits": of revoke-batch and of the audio bundle.
Selection = Annotated[
    list[Annotated[str, StringConstraints(max_length=160)]],
    Field(
        min_length=1,
        max_length=SELECTION_MAX,
        description="The Codes' ids, each once.",
        json_schema_extra={"uniqueItems": True},
    ),
    FailFast(),
    AfterValidator(_unique),
]


class RevokeCodes(Wire):
    """Codes of one project, all of which are to be revoked."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"project_id": "prj_bW9ybmluZy1zaG93LWV4", "xr_ids": ["xr_bm9yZGxpY2h0LWV4YW1wbA"]}]
        }
    )

    project_id: str
    xr_ids: Selection


class RevokedCodes(Wire):
    """How many Codes were asked for, revoked now, and over already."""

    requested_count: int
    revoked_count: int
    unchanged_count: int


class BundleCodes(Wire):
    """Codes whose frames are to be rendered into one file."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"xr_ids": ["xr_bm9yZGxpY2h0LWV4YW1wbA"], "protocol": 4}]}
    )

    xr_ids: Selection
    protocol: Annotated[
        Protocol, Field(description="3 ultrasound normal, 4 ultrasound fast, 5 ultrasound fastest.")
    ] = 4


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


def issued_body(issued: Sequence[Code]) -> bytes:
    """The answer to the issuance of one Code: `issued_view`, from the bytes that were signed."""
    (code,) = issued
    return msgspec.json.encode(_issued(code, _head_of(code)))


def batch_body(issued: Sequence[Code]) -> bytes:
    """The answer to the issuance of a batch: `IssuedCodes`, from the bytes that were signed."""
    head = _head_of(issued[0])
    return msgspec.json.encode({"data": [_issued(code, head) for code in issued]})


def _head_of(code: Code) -> dict[str, Any]:
    """What the Codes of one issuance have in common."""
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


def _issued(code: Code, head: dict[str, Any]) -> dict[str, Any]:
    signature = b',"signature":"' + base64url.encode(code.signature).encode("ascii") + b'"}'
    return {
        "xr_id": code.xr_id,
        **head,
        "broadcast_token": code.broadcast_token,
        "broadcast_frame": frame_of(code.broadcast_token),
        "signed_code": msgspec.Raw(code.payload[:-1] + signature),
    }


def _signed(code: Code) -> SignedCode:
    members = json.loads(code.payload)
    return SignedCode(**members, signature=base64url.encode(code.signature))
