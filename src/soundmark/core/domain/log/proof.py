"""Proofs that an entry is in the log, as one text.

Source: C2SP, tlog-proof.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from soundmark.core.domain.log.checkpoint import (
    SIZE_MAX,
    SignedCheckpoint,
    count_cosignatures,
    parse_checkpoint,
    verify_checkpoint,
)
from soundmark.core.domain.log.tree import HASH_BYTES, hash_leaf, includes
from soundmark.kit.crypto.signed_notes import NOTE_BYTES_MAX, NotANote, VerifierKey, decode, encode

_HEADER: Final = "c2sp.org/tlog-proof@v1"
_HASHES_MAX: Final = 63
_INDEX: Final = re.compile("index (0|[1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class LogProof:
    """A proof that was read, and not verified. `entry` is what its `extra` line claims the leaf to be."""

    entry: bytes
    index: int
    hashes: tuple[bytes, ...]
    signed: SignedCheckpoint


def write_proof(entry: bytes, index: int, hashes: Sequence[bytes], checkpoint: str) -> str:
    """Return a proof of the entry at this index against a checkpoint, which is given with its signatures."""
    lines = [_HEADER, f"extra {encode(entry)}", f"index {index}", *map(encode, hashes)]
    return "\n".join(lines) + "\n\n" + checkpoint


def parse_proof(text: str) -> LogProof:
    """Return a proof with an `extra` line, unverified.

    Raises: NotANote.
    """
    head, blank, checkpoint = text.partition("\n\n")
    header, extra, index, *hashes = [*head.split("\n"), "", "", ""][: max(3, head.count("\n") + 1)]
    match = _INDEX.fullmatch(index)
    if len(text) > NOTE_BYTES_MAX or not blank or header != _HEADER or not extra.startswith("extra ") or match is None:
        raise NotANote("is not a proof with an entry")
    raw = tuple(map(decode, hashes))
    if len(raw) > _HASHES_MAX or any(len(each) != HASH_BYTES for each in raw) or int(match[1]) > SIZE_MAX:
        raise NotANote("has malformed hashes")
    return LogProof(decode(extra.removeprefix("extra ")), int(match[1]), raw, parse_checkpoint(checkpoint))


def verify_proof(
    text: str, keys: Sequence[VerifierKey], *, witnesses: Sequence[VerifierKey] = (), quorum: int = 0
) -> LogProof:
    """Return a proof whose entry is in the tree of a checkpoint that a key signed and `quorum` witnesses cosigned.

    What the entry says is not judged.

    Raises: NotANote.
    """
    proof = parse_proof(text)
    signed = verify_checkpoint(str(proof.signed.note), keys)
    if count_cosignatures(signed.note, witnesses) < quorum:
        raise NotANote("has too few cosignatures")
    leaf, tree = hash_leaf(proof.entry), signed.checkpoint
    if not includes(leaf, proof.index, tree.size, proof.hashes, tree.root):
        raise NotANote("does not lead to the root of its checkpoint")
    return proof
