"""The audit chain of an organisation: a chain of seals, each over its entry and the seal before it."""

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Final

from soundmark.core.domain.tenancy.audit import AuditOutcome, Stage
from soundmark.core.domain.tenancy.scope import ActorType

CHAIN_KEY_BYTES: Final = 32
_GENESIS: Final = "soundmark audit chain 1"
_SEAL: Final = "soundmark audit seal 1"


@dataclass(frozen=True, slots=True)
class SealedContent:
    """All fields of one entry that its seal covers. Times are text: seconds since 1970, with six decimals.

    They are text because an altered time may be one that Python cannot represent, and must still be detected.
    """

    organization_id: str
    id: str
    project_id: str | None
    action: str
    actor_type: ActorType
    actor_id: str
    outcome: AuditOutcome
    metadata: str
    created_s: str
    finalised_s: str | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A stage of an entry that waits for its seal. `noted_at` is the time of its note, as PostgreSQL writes it.

    `is_sealed` means that the stage was sealed already, and only its note remains.
    """

    content: SealedContent
    stage: Stage
    noted_at: str
    is_sealed: bool


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One link. Positions count from 1, without gaps."""

    position: int
    entry_id: str
    stage: Stage
    seal: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The last link of a chain. An empty chain has position 0 and no entry."""

    position: int
    entry_id: str | None
    seal: bytes


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a chain. `first_broken` is the entry of the first break, or None if none can be named."""

    is_verified: bool
    entries: int
    unsealed: int
    first_broken: str | None


class ChainKey:
    """Makes seals. Without the key, nobody can make a valid one."""

    def __init__(self, key: bytes) -> None:
        assert len(key) == CHAIN_KEY_BYTES, "made by us"
        self._key: Final = key

    def genesis(self, organization_id: str) -> bytes:
        """Return the value before an organisation's first seal. It ties the chain to the organisation."""
        return self._mac(_canonical([_GENESIS, organization_id]))

    def seal(self, previous: bytes, position: int, content: SealedContent, stage: Stage) -> bytes:
        """Return the seal of one entry at one stage, which follows the seal `previous`.

        Finalising an entry only sets its outcome and the time. So its earlier stage can be derived from the final one.
        """
        is_final = stage == "final"
        fields: list[str | int | None] = [
            _SEAL,
            position,
            stage,
            content.organization_id,
            content.id,
            content.project_id,
            content.action,
            content.actor_type,
            content.actor_id,
            content.outcome if is_final else "requested",
            content.metadata,
            content.created_s,
            content.finalised_s if is_final else None,
        ]
        return self._mac(previous + _canonical(fields))

    def _mac(self, message: bytes) -> bytes:
        return hmac.digest(self._key, message, hashlib.sha256)


def _canonical(fields: list[str | int | None]) -> bytes:
    """Return the canonical form (RFC 8785) of a flat list of strings and small integers.

    For these, the standard library writes the same bytes, and faster.
    """
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
