"""The records that verification returns, made only from bytes whose signature was checked."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from soundmark_sdk import timestamps
from soundmark_sdk.keys import KeySet
from soundmark_sdk.strict_json import JsonValue


@dataclass(frozen=True, slots=True)
class Intent:
    """The action that the issuer intends. `resource` is the JSON object as signed; an intent has at most 16 KiB."""

    type: str
    action: str
    resource: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Policy:
    """Whether the Code may be measured. It names an integration exactly when it may."""

    audience_measurement: bool
    audience_integration_id: str | None


@dataclass(frozen=True, slots=True)
class MeasurementProof:
    """Core's short-lived statement that one receiver resolved one Code. `proof_id` is None in the older shape."""

    proof_id: str | None
    xr_id: str
    integration_id: str
    campaign_id: str | None
    issued_at: datetime
    expires_at: datetime
    key_id: str
    signature: str

    def document(self) -> dict[str, JsonValue]:
        """Return the proof as the wire writes it, for the `proof` member of an Audience event."""
        document: dict[str, JsonValue] = {
            "xr_id": self.xr_id,
            "integration_id": self.integration_id,
            "campaign_id": self.campaign_id,
            "issued_at": timestamps.write(self.issued_at),
            "expires_at": timestamps.write(self.expires_at),
            "key_id": self.key_id,
            "signature": self.signature,
        }
        return document if self.proof_id is None else {"proof_id": self.proof_id, **document}


@dataclass(frozen=True, slots=True)
class Resolution:
    """A verified answer to one broadcast token.

    `verified_at` is the receiver's own time of verification, and `verified_with` are the published keys that it used.
    `issued_at`, `expires_at` and `key_id` are those of the envelope. After `expires_at` the answer proves nothing:
    resolve again.
    """

    xr_id: str
    intent: Intent
    policy: Policy
    measurement_proof: MeasurementProof | None
    issued_at: datetime
    expires_at: datetime
    key_id: str
    verified_at: datetime
    verified_with: KeySet = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class SignedCode:
    """A verified `xr-code-v1` object: what an issuer signed, whether or not it has expired since."""

    xr_id: str
    organization_id: str
    project_id: str
    campaign_id: str | None
    issuer: str
    issued_at: datetime
    expires_at: datetime
    intent: Intent
    policy: Policy
    token_digest: str
    key_id: str
