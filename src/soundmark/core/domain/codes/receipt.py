"""Idempotency keys of an organisation, and the responses that are stored for them.

Issuing Codes and making checkouts share one key space.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from soundmark.kit.crypto.canonical import NotCanonical, canonicalize

IssuanceRoute: TypeAlias = Literal["single", "batch"]
KeyRoute: TypeAlias = Literal[IssuanceRoute, "checkout"]

KEY_PATTERN: Final = r"^[A-Za-z0-9._~-]{16,128}$"  # Contract, section 3.
KEPT: Final = timedelta(hours=24)  # API v1, "Limits".
# A request gets a digest even if it will be refused, as long as it is small enough ever to have been issued.
_DEPTH_MAX: Final = 64
_SIZE_MAX_BYTES: Final = 32 * 1024  # An intent has at most 16 KiB, and everything else less than 4 KiB.

_KEY: Final = re.compile(KEY_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with an idempotency key. `request_digest` is None for a request that can never have been accepted."""

    key_digest: bytes
    is_key_well_formed: bool
    route: KeyRoute
    request_digest: bytes | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The stored response to a request with an idempotency key.

    A checkout belongs to no project; its `answer` is empty until its provider has made a page.
    """

    key_digest: bytes
    project_id: str | None
    route: KeyRoute
    request_digest: bytes
    answer: bytes
    created_at: datetime

    def is_kept(self, now: datetime) -> bool:
        """Return whether the receipt is still valid. One that is not counts as deleted."""
        return now < self.created_at + KEPT

    def belongs_to(self, keyed: KeyedRequest) -> bool:
        """Return whether this is the receipt of that request."""
        return (self.route, self.request_digest) == (keyed.route, keyed.request_digest)


def make_keyed_request(key: str, route: KeyRoute, request: Any) -> KeyedRequest:
    """Return a parsed request as one with the idempotency key `key`.

    Source: API v1, "Idempotency rules".
    """
    try:
        canonical = canonicalize(request, depth_max=_DEPTH_MAX, size_max_bytes=_SIZE_MAX_BYTES)
    except NotCanonical:
        request_digest = None
    else:
        request_digest = hashlib.sha256(canonical).digest()
    is_well_formed = _KEY.fullmatch(key) is not None
    return KeyedRequest(hashlib.sha256(key.encode()).digest(), is_well_formed, route, request_digest)
