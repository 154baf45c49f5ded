"""Core's signing keys as they are stored."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.kit.crypto.signing import KeyStatus


@dataclass(frozen=True, slots=True)
class SigningKeyRecord:
    """One key; `sealed_seed` is None once it is retired.

    `sealed_public_key` is None for a key of a release that did not seal the public half; such a key is not believed
    until the next start has sealed it, which needs its secret half. `push_began_at` is the moment from which on
    Audience is told of the key, `pushed_at` that at which every integration had been.
    """

    key_id: str
    public_key: bytes
    sealed_seed: bytes | None
    status: KeyStatus
    created_at: datetime
    activated_at: datetime | None
    superseded_at: datetime | None
    retired_at: datetime | None
    sealed_public_key: bytes | None
    push_began_at: datetime | None = None
    pushed_at: datetime | None = None
