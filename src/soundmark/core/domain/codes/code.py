"""XR Codes: their signed record, their token and frame, and their status."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

CodeStatus = Literal["active", "expired", "revoked"]

TOKEN_PREFIX: Final = "brd_"  # noqa: S105 - a prefix, not a secret
TOKEN_RANDOM_CHARS: Final = 16  # 96 random bits: airtime is the receiver's latency (contract, section 1).
FRAME_PREFIX: Final = "XRC1:"


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
        """Return the status at `now`."""
        return _status(self.revoked_at, self.expires_at, now)


@dataclass(frozen=True, slots=True)
class ListedCode:
    """A Code without its signed record."""

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

    def status(self, now: datetime) -> CodeStatus:
        """Return the status at `now`."""
        return _status(self.revoked_at, self.expires_at, now)

    def with_signature(self, payload: bytes, signature: bytes) -> Code:
        """Return the Code with its signed record."""
        # Named one by one: an archive makes a million of them, and a loop over the fields takes three times as long.
        return Code(
            xr_id=self.xr_id,
            organization_id=self.organization_id,
            project_id=self.project_id,
            campaign_id=self.campaign_id,
            issuer=self.issuer,
            issued_at=self.issued_at,
            expires_at=self.expires_at,
            broadcast_token=self.broadcast_token,
            audience_integration_id=self.audience_integration_id,
            key_id=self.key_id,
            revoked_at=self.revoked_at,
            payload=payload,
            signature=signature,
        )


def frame_of(token: str) -> str:
    """Return the frame of a token: the text that is turned into sound."""
    return FRAME_PREFIX + token


def digest_of(token: str) -> str:
    """Return the digest that binds a token to its Code: SHA-256 of its ASCII text, base64url."""
    return base64url.encode(hashlib.sha256(token.encode("ascii")).digest())


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that all Codes of one issuance share. `intent` is canonical JSON."""

    organization_id: str
    project_id: str
    campaign_id: str | None
    issuer: str
    issued_at: datetime
    expires_at: datetime
    intent: bytes
    audience_integration_id: str | None
    key_id: str

    def head(self) -> bytes:
        """Return the beginning of the signed bytes, which these Codes share; `payload_of` adds the rest.

        RFC 8785 sorts members by name, and the names of the members that differ between the Codes come last.
        """
        # The intent, which is the larger part, was made canonical when it was checked.
        before = {
            "campaign_id": self.campaign_id,
            "expires_at": format_timestamp(self.expires_at),
        }
        after = {
            "issued_at": format_timestamp(self.issued_at),
            "issuer": self.issuer,
            "key_id": self.key_id,
            "organization_id": self.organization_id,
            "policy": {
                "audience_measurement": self.audience_integration_id is not None,
                "audience_integration_id": self.audience_integration_id,
            },
            "project_id": self.project_id,
        }
        return canonicalize(before)[:-1] + b',"intent":' + self.intent + b"," + canonicalize(after)[1:-1]


def payload_of(head: bytes, *, xr_id: str, broadcast_token: str) -> bytes:
    """Return the bytes that Core signs for one Code: the record without `signature`, as RFC 8785.

    Source: contract, section 3, `signed_code`.
    """
    tail = f',"token_digest":"{digest_of(broadcast_token)}","version":1,"xr_id":"{xr_id}"}}'
    return head + tail.encode("ascii")


def sign_code(facts: Facts, key: SigningKey, *, xr_id: str, broadcast_token: str, head: bytes | None = None) -> Code:
    """Return a signed Code with these facts. `head` may be given to avoid computing `facts.head()` again."""
    payload = payload_of(facts.head() if head is None else head, xr_id=xr_id, broadcast_token=broadcast_token)
    return Code(
        xr_id=xr_id,
        organization_id=facts.organization_id,
        project_id=facts.project_id,
        campaign_id=facts.campaign_id,
        issuer=facts.issuer,
        issued_at=facts.issued_at,
        expires_at=facts.expires_at,
        broadcast_token=broadcast_token,
        audience_integration_id=facts.audience_integration_id,
        key_id=facts.key_id,
        revoked_at=None,
        payload=payload,
        signature=key.sign(payload),
    )


def _status(revoked_at: datetime | None, expires_at: datetime, now: datetime) -> CodeStatus:
    """Return the status at `now`. Expiry is never stored, and a revoked Code stays revoked after its expiry."""
    if revoked_at is not None:
        return "revoked"
    return "active" if now < expires_at else "expired"
