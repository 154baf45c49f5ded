"""Proofs that an entry is in the log: a path of hashes from the entry to a signed checkpoint."""

import base64
import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.transparency.commitments import DIGEST_BYTES, Commitment, check_entry
from soundmark_sdk.transparency.policy import NAME, LogPolicy, NoteKey

PROOF_BYTES_MAX: Final = 64 * 1024
_NUMBER: Final = "0|[1-9][0-9]{0,18}"
_BASE64: Final = "[A-Za-z0-9+/]+={0,2}"
_SIGNATURE: Final = re.compile(f"— ({NAME}) ({_BASE64})\n")
_PROOF: Final = re.compile(
    f"c2sp\\.org/tlog-proof@v1\nextra (?P<entry>{_BASE64})\nindex (?P<index>{_NUMBER})\n"
    f"(?P<path>(?:{_BASE64}\n){{0,63}})\n(?P<text>(?:[^\n]+\n)+)\n(?P<signatures>(?:{_SIGNATURE.pattern})+)"
)
_CHECKPOINT: Final = re.compile(f"([^\n]+)\n({_NUMBER})\n({_BASE64})\n")
_ID_BYTES: Final = 4
_TIME_BYTES: Final = 8
_Signatures: TypeAlias = Sequence[tuple[str, bytes]]


class NotYetProven(Unverifiable):
    """The log does not prove it now, and may do so in a few seconds."""


@dataclass(frozen=True, slots=True)
class VerifiedProof:
    """Where an entry is in the log: its index, and the size of the tree that a checkpoint signs."""

    index: int
    size: int
    cosignatures: int


def verify_log_proof(proof: bytes, policy: LogPolicy, commitment: Commitment, digest: str) -> VerifiedProof:
    """Verify that the log holds the entry with this digest, which `commit` computes; return where.

    `proof` is the answer of `GET /v1/log/proofs/{digest}`.

    Raises: Unverifiable, also if fewer than `policy.quorum` witnesses cosigned the checkpoint.
    Source: C2SP, tlog-proof and tlog-checkpoint; RFC 9162, section 2.1.3.2; wire contract, section 11.
    """
    entry, index, path, text, signatures = _parse(proof)
    check_entry(entry, commitment, digest)
    if not any(_is_signed(text, signatures, key) for key in policy.log_keys):
        raise Unverifiable("The log's key did not sign the checkpoint.")
    cosignatures = sum(_is_cosigned(text, signatures, witness) for witness in policy.witness_keys)
    if cosignatures < policy.quorum:
        raise NotYetProven("Too few witnesses cosigned the checkpoint.")
    origin, size, root = _read_checkpoint(text)
    if origin != policy.origin:
        raise Unverifiable("The checkpoint is that of another log.")
    if _climb(hashlib.sha256(b"\0" + entry).digest(), index, size, path) != root:
        raise Unverifiable("The proof does not lead to the root of its checkpoint.")
    return VerifiedProof(index, size, cosignatures)


def _parse(proof: bytes) -> tuple[bytes, int, list[bytes], str, _Signatures]:
    """Return the entry, its index, the path, the text of the checkpoint and its signatures."""
    try:
        match = _PROOF.fullmatch(proof.decode()) if len(proof) <= PROOF_BYTES_MAX else None
        if match is not None:
            signatures = [(name, _decode(raw)) for name, raw in _SIGNATURE.findall(match["signatures"])]
            path = [_decode(line) for line in match["path"].split()]
            return _decode(match["entry"]), int(match["index"]), path, match["text"], signatures
    except ValueError:
        pass
    raise Unverifiable("The proof from the log is malformed.")


def _read_checkpoint(text: str) -> tuple[str, int, bytes]:
    match = _CHECKPOINT.fullmatch(text)
    if match is not None:
        with contextlib.suppress(ValueError):
            return match[1], int(match[2]), _decode(match[3])
    raise Unverifiable("The checkpoint of the log is malformed.")


def _is_signed(text: str, signatures: _Signatures, key: NoteKey) -> bool:
    return any(
        name == key.name and raw[:_ID_BYTES] == key.id and key.verify(text.encode(), raw[_ID_BYTES:])
        for name, raw in signatures
    )


def _is_cosigned(text: str, signatures: _Signatures, witness: NoteKey) -> bool:
    """Return whether a witness cosigned the checkpoint; when does not matter here."""
    for name, raw in signatures:
        if name == witness.name and raw[:_ID_BYTES] == witness.id:
            time, signature = raw[_ID_BYTES : _ID_BYTES + _TIME_BYTES], raw[_ID_BYTES + _TIME_BYTES :]
            message = f"cosignature/v1\ntime {int.from_bytes(time, 'big')}\n{text}".encode()
            if len(time) == _TIME_BYTES and witness.verify(message, signature):
                return True
    return False


def _climb(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root to which the path leads from a leaf; None if the path has another length than its tree."""
    if index >= size:
        return None
    node, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0 or len(sibling) != DIGEST_BYTES:
            return None
        if node % 2 or node == last:
            found = hashlib.sha256(b"\1" + sibling + found).digest()
            while not node % 2 and node:
                node, last = node // 2, last // 2
        else:
            found = hashlib.sha256(b"\1" + found + sibling).digest()
        node, last = node // 2, last // 2
    return found if last == 0 else None


def _decode(text: str) -> bytes:
    """Return the bytes of base64 in its canonical spelling.

    Raises: ValueError.
    """
    raw = base64.b64decode(text, validate=True)
    if base64.b64encode(raw).decode() != text:
        raise ValueError(text)
    return raw
