"""XR Codes: what is signed, what it is called on the air, and what state it is in."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from soundmark.kit import base64url
from soundmark.kit.canonical import canonicalize
from soundmark.kit.timestamps import format_timestamp

CodeStatus = Literal["active", "expired", "revoked"]

TOKEN_PREFIX: Final = "brd_"  # noqa: S105 - a prefix, no token
TOKEN_RANDOM_CHARS: Final = 16  # 96 random bits: airtime is the receiver's latency (contract, section 1).
FRAME_PREFIX: Final = "XRC1:"
SIGNED_SIZE_MAX_BYTES: Final = 32 * 1024  # The largest intent, and room for every other member.
SIGNED_DEPTH_MAX: Final = 33  # The deepest intent stands one level below the record.


@dataclass(frozen=True, slots=True)
class Code:
    """One issued Code. `payload` is the canonical text that `signature` covers."""

    xr_id: str
    organization_id: str
    project_id: str
    campaign_id: str | None
    issuer: str
    issued_at: datetime
    expires_at: datetime
    broadcast_token: str
    audience_integration_id: str | None
    key_id: str
    revoked_at: datetime | None
    payload: bytes
    signature: bytes

    def status(self, now: datetime) -> CodeStatus:
        """The state at `now`."""
        return _status(self.revoked_at, self.expires_at, now)


@dataclass(frozen=True, slots=True)
class ListedCode:
    """A Code without what was signed."""

    xr_id: str
    organization_id: str
    project_id: str
    campaign_id: str | None
    issuer: str
    issued_at: datetime
    expires_at: datetime
    broadcast_token: str
    audience_integration_id: str | None
    revoked_at: datetime | None

    def status(self, now: datetime) -> CodeStatus:
        """The state at `now`."""
        return _status(self.revoked_at, self.expires_at, now)


def frame_of(token: str) -> str:
    """The text that is broadcast for a token."""
    return FRAME_PREFIX + token


def digest_of(token: str) -> str:
    """What binds a token to its Code: SHA-256 of its ASCII text, base64url."""
    return base64url.encode(hashlib.sha256(token.encode("ascii")).digest())


def payload_of(  # noqa: PLR0913 - the members of the record, each by its name
    *,
    xr_id: str,
    organization_id: str,
    project_id: str,
    campaign_id: str | None,
    issuer: str,
    issued_at: datetime,
    expires_at: datetime,
    intent: Mapping[str, Any],
    audience_integration_id: str | None,
    broadcast_token: str,
    key_id: str,
) -> bytes:
    """The bytes that Core signs for a Code: RFC 8785 of the record without `signature`.

    Raises: kit.canonical.NotCanonical.
    Source: contract, section 3, signed_code.
    """
    return canonicalize(
        {
            "version": 1,
            "xr_id": xr_id,
            "organization_id": organization_id,
            "project_id": project_id,
            "campaign_id": campaign_id,
            "issuer": issuer,
            "issued_at": format_timestamp(issued_at),
            "expires_at": format_timestamp(expires_at),
            "intent": intent,
            "policy": {
                "audience_measurement": audience_integration_id is not None,
                "audience_integration_id": audience_integration_id,
            },
            "token_digest": digest_of(broadcast_token),
            "key_id": key_id,
        },
        depth_max=SIGNED_DEPTH_MAX,
        size_max_bytes=SIGNED_SIZE_MAX_BYTES,
    )


def _status(revoked_at: datetime | None, expires_at: datetime, now: datetime) -> CodeStatus:
    """The state at `now`; expiry is never written down, and what was revoked stays so when its time is over."""
    if revoked_at is not None:
        return "revoked"
    return "active" if now < expires_at else "expired"
