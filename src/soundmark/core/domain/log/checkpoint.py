"""Checkpoints: a log's signed statement of its size and root; and the cosignatures of witnesses.

Source: C2SP, tlog-checkpoint, tlog-cosignature and tlog-proof.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from soundmark.core.domain.log.tree import HASH_BYTES
from soundmark.kit.crypto.signed_notes import (
    COSIGNATURE,
    NotANote,
    Note,
    NoteSignature,
    VerifierKey,
    decode,
    encode,
    parse_note,
    sign_note,
)
from soundmark.kit.crypto.signing import SIGNATURE_BYTES, SigningKey, verifies

SIZE_MAX: Final = 2**63 - 1
_TIME_BYTES: Final = 8
_SIZE: Final = re.compile("0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The size and root of a log's tree."""

    origin: str
    size: int
    root: bytes

    def __str__(self) -> str:
        return f"{self.origin}\n{self.size}\n{encode(self.root)}\n"


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint, and the note that it was read from."""

    checkpoint: Checkpoint
    note: Note


def sign_checkpoint(checkpoint: Checkpoint, keys: Iterable[SigningKey]) -> Note:
    """Return the checkpoint as a note, signed by each key of the log."""
    return sign_note(str(checkpoint), [(checkpoint.origin, key) for key in keys])


def parse_checkpoint(data: bytes | str) -> SignedCheckpoint:
    """Return a checkpoint, whose signatures are not verified. Extension lines are refused: our logs have none.

    Raises: NotANote.
    """
    note = parse_note(data)
    lines = note.text.split("\n")
    if len(lines) != 4 or not lines[0] or not _SIZE.fullmatch(lines[1]) or int(lines[1]) > SIZE_MAX:  # noqa: PLR2004 - three lines, and what follows the last newline
        raise NotANote("is not a checkpoint")
    root = decode(lines[2])
    if len(root) != HASH_BYTES:
        raise NotANote("has a root of another length")
    return SignedCheckpoint(Checkpoint(lines[0], int(lines[1]), root), note)


def verify_checkpoint(data: bytes | str, keys: Sequence[VerifierKey]) -> SignedCheckpoint:
    """Return a checkpoint that one of these keys of the log signed. All of them have the log's origin as their name.

    Raises: NotANote.
    """
    signed = parse_checkpoint(data)
    for key in keys:
        if key.name == signed.checkpoint.origin and signed.note.is_signed_by(key):
            return signed
    raise NotANote("is not signed by a key of the log")


def cosign(note_text: str, name: str, key: SigningKey, *, at_s: int) -> NoteSignature:
    """Return a witness's signature of a checkpoint's text at this POSIX time."""
    signature = at_s.to_bytes(_TIME_BYTES, "big") + key.sign(_cosigned(note_text, at_s))
    return NoteSignature(name, VerifierKey(name, COSIGNATURE, key.public_key).id, signature)


def is_cosigned(note: Note, witness: VerifierKey) -> bool:
    """Return whether the witness cosigned the note."""
    signature = note.of(witness)
    if witness.type != COSIGNATURE or signature is None or len(signature) != _TIME_BYTES + SIGNATURE_BYTES:
        return False
    at_s = int.from_bytes(signature[:_TIME_BYTES], "big")
    if at_s > SIZE_MAX:
        return False
    return verifies(witness.public_key, _cosigned(note.text, at_s), signature[_TIME_BYTES:])


def count_cosignatures(note: Note, witnesses: Iterable[VerifierKey]) -> int:
    """Return how many of the witnesses cosigned the note."""
    return sum(is_cosigned(note, witness) for witness in witnesses)


def _cosigned(text: str, at_s: int) -> bytes:
    return f"cosignature/v1\ntime {at_s}\n{text}".encode()


def write_proof(entry: bytes, index: int, hashes: Sequence[bytes], checkpoint: str) -> str:
    """Return a proof of the entry at this index against a checkpoint, which is given with its signatures."""
    lines = ["c2sp.org/tlog-proof@v1", f"extra {encode(entry)}", f"index {index}", *map(encode, hashes)]
    return "\n".join(lines) + "\n\n" + checkpoint
