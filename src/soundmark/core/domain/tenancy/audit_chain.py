"""What binds the audit entries of one organisation together: seals, each over its entry and the seal before it."""

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
    """Everything of one entry, as its seal covers it. Moments are seconds since 1970 with six places, as a text.

    What was altered may be no moment that Python knows, and must be told from the genuine all the same.
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
    """A stage of an entry that is to be sealed, noted at the moment `noted_at`, in PostgreSQL's spelling.

    `is_sealed` where that was done and the note of it stayed behind.
    """

    content: SealedContent
    stage: Stage
    noted_at: str
    is_sealed: bool


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One link. Positions count from 1 without a gap."""

    position: int
    entry_id: str
    stage: Stage
    seal: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The last link: position 0 and no entry before the first."""

    position: int
    entry_id: str | None
    seal: bytes


@dataclass(frozen=True, slots=True)
class Verification:
    """How a chain was found. `first_broken` is the entry to look at first; None where none can be named."""

    is_verified: bool
    entries: int
    unsealed: int
    first_broken: str | None


class ChainKey:
    """Makes seals. Only who has the key can make one that holds."""

    def __init__(self, key: bytes) -> None:
        assert len(key) == CHAIN_KEY_BYTES, "made by us"
        self._key: Final = key

    def genesis(self, organization_id: str) -> bytes:
        """What the first seal of an organisation stands on: no chain can be passed off as another's."""
        return self._mac(_canonical([_GENESIS, organization_id]))

    def seal(self, previous: bytes, position: int, content: SealedContent, stage: Stage) -> bytes:
        """The seal of one entry at one stage behind the seal `previous`.

        Finalising an entry changes its outcome and gives it a moment, nothing else; so what it was before can be told
        from what it became.
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
    """RFC 8785 of a flat list of texts and small numbers, which the standard library writes alike, and faster."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
