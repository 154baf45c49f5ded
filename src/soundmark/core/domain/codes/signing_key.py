"""Core's signing keys as stored."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.kit.crypto.signing import KeyStatus


@dataclass(frozen=True, slots=True)
class SigningKeyRecord:
    """One key. `sealed_seed` is None once the key is retired.

    `push_began_at` is when Audience began to receive the key, `pushed_at` when every integration had received it.
    """

    key_id: str
    public_key: bytes
    sealed_seed: bytes | None
    status: KeyStatus
    created_at: datetime
    activated_at: datetime | None
    superseded_at: datetime | None
    retired_at: datetime | None
    sealed_public_key: bytes
    push_began_at: datetime | None = None
    pushed_at: datetime | None = None
