"""What is remembered of an issuance that was asked for with an idempotency key."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from soundmark.kit.canonical import NotCanonical, canonicalize

IssuanceRoute = Literal["single", "batch"]

KEY_PATTERN: Final = r"^[A-Za-z0-9._~-]{16,128}$"  # Contract, section 3.
KEPT: Final = timedelta(hours=24)  # API v1, "Limits".
# Of a request any part may be refused after this; a digest it has all the same, if it could ever have been issued.
_DEPTH_MAX: Final = 64
_SIZE_MAX_BYTES: Final = 32 * 1024  # An intent has 16 KiB, and everything beside it fewer than 4.

_KEY: Final = re.compile(KEY_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request with an idempotency key. `request_digest` None: one that never can have been issued."""

    key_digest: bytes
    route: IssuanceRoute
    request_digest: bytes | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an attempt that succeeded was answered."""

    key_digest: bytes
    project_id: str
    route: IssuanceRoute
    request_digest: bytes
    answer: bytes
    created_at: datetime

    def is_kept(self, now: datetime) -> bool:
        """Whether it still counts; what does not might as well not be there."""
        return now < self.created_at + KEPT

    def belongs_to(self, attempt: Attempt) -> bool:
        """Whether the attempt is this request over again."""
        return (self.route, self.request_digest) == (attempt.route, attempt.request_digest)


def attempt_of(key: str, route: IssuanceRoute, request: Any) -> Attempt | None:
    """The attempt that `key` names for a parsed request; None where it is no key.

    Source: API v1, "Idempotency rules".
    """
    if _KEY.fullmatch(key) is None:
        return None
    try:
        canonical = canonicalize(request, depth_max=_DEPTH_MAX, size_max_bytes=_SIZE_MAX_BYTES)
    except NotCanonical:
        digest = None
    else:
        digest = hashlib.sha256(canonical).digest()
    return Attempt(hashlib.sha256(key.encode("ascii")).digest(), route, digest)
