"""The log as stored: its state, its keys and its checkpoints; and the witnesses that a deployment configures."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from soundmark.core.domain.log.checkpoint import is_cosigned
from soundmark.kit.crypto.signed_notes import ED25519, Note, NoteSignature, VerifierKey, parse_note, parse_signatures

LOG_PATH: Final = "/v1/log"  # Below the base URL.
StopReason = Literal["witness_conflict", "tree_damaged", "restored"]


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of the only log. `size` is that of the tree, of which the newest part may not be published yet.

    Codes that were active when the log was made are entered by token, up to `entered_token`; None when all are.
    """

    origin: str
    size: int
    stopped_reason: StopReason | None
    entered_token: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LogKey:
    """A key that signs checkpoints, and nothing else. `sealed_seed` is None once the key is retired."""

    id: str
    public_key: bytes
    sealed_seed: bytes | None
    created_at: datetime
    retired_at: datetime | None

    def verifier(self, origin: str) -> VerifierKey:
        """Return what verifies its signatures. The name of every key of the log is the origin."""
        return VerifierKey(origin, ED25519, self.public_key)


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint. `note` has the log's signatures, `cosignatures` are lines of witnesses that belong at its end."""

    size: int
    root: bytes
    note: str
    cosignatures: str
    signed_at: datetime
    asked_at: datetime | None
    published_at: datetime | None

    @property
    def text(self) -> str:
        """The checkpoint as it is served."""
        return self.note + self.cosignatures

    def parse(self) -> Note:
        """Return the checkpoint as a note.

        Raises: NotANote if somebody altered the row.
        """
        return parse_note(self.text)

    def with_cosignature(self, cosignature: NoteSignature) -> "StoredCheckpoint":
        """Return the checkpoint with one more line, in place of an older one of the same witness."""
        others = parse_signatures(self.cosignatures) if self.cosignatures else ()
        who = (cosignature.name, cosignature.key_id)
        lines = [str(each) for each in others if (each.name, each.key_id) != who]
        return replace(self, cosignatures="".join([*lines, str(cosignature)]))

    def lacks(self, witnesses: Iterable["Witness"]) -> list["Witness"]:
        """Return those of the witnesses that have not cosigned it.

        Raises: NotANote if somebody altered the row.
        """
        note = self.parse()
        return [witness for witness in witnesses if not is_cosigned(note, witness.key)]


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness: the key that it cosigns with, and the URL below which it takes checkpoints."""

    key: VerifierKey
    url: str


@dataclass(frozen=True, slots=True)
class Transparency:
    """How a deployment keeps its log: the origin of a new one, and how many of which witnesses must cosign."""

    origin: str
    witnesses: tuple[Witness, ...]
    quorum: int
