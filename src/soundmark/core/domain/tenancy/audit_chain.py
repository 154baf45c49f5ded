"""The two audit chains of an organisation: of seals, which need Core's key, and of hashes, which anybody recomputes."""

import contextlib
import hashlib
import hmac
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from soundmark.core.domain.tenancy.audit import AuditOutcome, Stage
from soundmark.core.domain.tenancy.scope import ActorType
from soundmark.kit.crypto.canonical import DEPTH_MAX, canonicalize
from soundmark.kit.text.timestamps import format_timestamp

CHAIN_KEY_BYTES: Final = 32
CHAIN_BEGINNING: Final = bytes(32)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
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
    """One link. Positions count from 1, without gaps. A final one is also a link of the public chain."""

    position: int
    entry_id: str
    stage: Stage
    seal: bytes
    chain_position: int | None
    chain_hash: bytes | None


@dataclass(frozen=True, slots=True)
class Head:
    """The last link of each chain. An empty chain has position 0, and no entry."""

    position: int
    entry_id: str | None
    seal: bytes
    chain_position: int
    chain_hash: bytes

    def next_place(self, content: SealedContent, stage: Stage) -> tuple[int, bytes] | tuple[None, None]:
        """Return the position and the hash of the next entry in the public chain, which only a final one has."""
        if stage != "final":
            return None, None
        position = self.chain_position + 1
        return position, hash_entry(self.chain_hash, position, content)

    def after(self, link: ChainLink) -> "Head":
        """Return the head once `link` follows."""
        if link.chain_position is None or link.chain_hash is None:
            return Head(link.position, link.entry_id, link.seal, self.chain_position, self.chain_hash)
        return Head(link.position, link.entry_id, link.seal, link.chain_position, link.chain_hash)


@dataclass(frozen=True, slots=True)
class LoggedHead:
    """A head of the public chain that was entered into the transparency log, where `digest` finds it."""

    entries: int
    chain_hash: bytes
    digest: bytes
    logged_at: datetime


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a chain. `first_broken` is the entry of the first break, or None if none can be named."""

    is_verified: bool
    entries: int
    unsealed: int
    first_broken: str | None


def read_metadata(text: str) -> dict[str, Any]:
    """Return the stored object if it can be written canonically, or an object that holds the text.

    An entry that somebody altered in the database must not hide all the others.
    """
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict):
            canonicalize(value, depth_max=DEPTH_MAX - 1, size_max_bytes=sys.maxsize)
            return value
    return {"unreadable": text}


def hash_entry(previous: bytes, position: int, content: SealedContent) -> bytes:
    """Return the hash of the final entry at `position` of the public chain, which follows the hash `previous`.

    It is SHA-256 over `previous` and the RFC 8785 bytes of the entry as the API shows it, without this hash.

    Source: contract, section 11, Audit chain.
    """
    shown = {
        "id": content.id,
        "organization_id": content.organization_id,
        "project_id": content.project_id,
        "action": content.action,
        "actor": {"type": content.actor_type, "id": content.actor_id},
        "outcome": content.outcome,
        "metadata": read_metadata(content.metadata),
        "created_at": _show_time(content.created_s),
        "finalised_at": None if content.finalised_s is None else _show_time(content.finalised_s),
        "position": position,
    }
    return hashlib.sha256(previous + canonicalize(shown, size_max_bytes=sys.maxsize)).digest()


class ChainKey:
    """Makes seals. Without the key, nobody can make a valid one."""

    def __init__(self, key: bytes) -> None:
        assert len(key) == CHAIN_KEY_BYTES, "made by us"
        self._key: Final = key

    def genesis(self, organization_id: str) -> bytes:
        """Return the value before an organisation's first seal. It ties the chain to the organisation."""
        return self._mac(_canonical([_GENESIS, organization_id]))

    def link(self, head: Head, content: SealedContent, stage: Stage) -> ChainLink:
        """Return the link after `head`: the seal of one entry at one stage, and its place in the public chain."""
        position = head.position + 1
        seal = self.seal(head.seal, position, content, stage)
        return ChainLink(position, content.id, stage, seal, *head.next_place(content, stage))

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


def _show_time(seconds: str) -> str:
    """Return a time as the API shows it. One that Python cannot represent was altered, and stays as it is."""
    try:
        return format_timestamp(_EPOCH + timedelta(microseconds=int(Decimal(seconds) * 1_000_000)))
    except (ArithmeticError, ValueError):
        return seconds
