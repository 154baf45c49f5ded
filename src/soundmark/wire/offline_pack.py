"""The offline pack: the signed answers of active Codes, for receivers that cannot reach the service."""

from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from soundmark.wire.shape import CampaignId, Digest, KeyId, Signature, Timestamp, Wire, XrId
from soundmark.wire.xr_code import Intent, ProjectId

PACK_VERSION: Final = 1
PACK_FORMAT: Final = "svc-offline-pack-v1"
CODES_MAX: Final = 10_000
PACK_BYTES_MAX: Final = 32 * 1024 * 1024
VALID_FOR_MIN: Final = timedelta(minutes=5)
VALID_FOR_MAX: Final = timedelta(hours=24)

PackId = Annotated[str, StringConstraints(pattern=r"^opk_[A-Za-z0-9_-]{22}$")]


class PackedCode(Wire):
    """What a receiver does when it hears this Code. The pack has only the digest of its token."""

    xr_id: XrId
    token_digest: Annotated[Digest, Field(description="SHA-256 of the broadcast token, base64url.")]
    intent: Intent
    expires_at: Timestamp


class OfflinePack(Wire):
    """An offline pack: the Codes of a campaign, or of a whole project, that were active at `issued_at`.

    Measured Codes are not in it. A receiver answers from it only while it cannot reach the service, and never after
    `valid_until` or after the Code's `expires_at`. `signature` is Ed25519 over the canonical JSON (RFC 8785) of the
    pack without this member.
    """

    version: Literal[1]
    format: Literal["svc-offline-pack-v1"]
    pack_id: PackId
    project_id: ProjectId
    campaign_id: Annotated[CampaignId | None, Field(description="Null if the pack is for the whole project.")]
    issued_at: Timestamp
    valid_until: Timestamp
    codes: Annotated[list[PackedCode], Field(max_length=CODES_MAX, description="In the order of `xr_id`.")]
    key_id: KeyId
    signature: Signature
