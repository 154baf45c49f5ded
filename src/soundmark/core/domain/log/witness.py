"""The judgement of a witness: it cosigns a log's checkpoint if that extends what it has seen.

Source: C2SP, tlog-witness.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from soundmark.core.domain.log.checkpoint import Checkpoint, SignedCheckpoint, parse_checkpoint, verify_checkpoint
from soundmark.core.domain.log.tree import EMPTY_ROOT, HASH_BYTES, extends
from soundmark.kit.crypto.signed_notes import NotANote, VerifierKey, decode

SIZE_TYPE: Final = "text/x.tlog.size"
_PROOF_MAX: Final = 63
_OLD: Final = re.compile("old (0|[1-9][0-9]{0,18})")


class WitnessRefusal(Exception):
    """A checkpoint that is not cosigned: the status and body of the response."""

    def __init__(self, status: int, body: str, media_type: str = "text/plain; charset=utf-8") -> None:
        super().__init__(body)
        self.status: Final = status
        self.body: Final = body
        self.media_type: Final = media_type


@dataclass(frozen=True, slots=True)
class AddCheckpoint:
    """A request: the size from which the checkpoint grew, the proof of it, and the checkpoint, unverified."""

    old_size: int
    proof: tuple[bytes, ...]
    signed: SignedCheckpoint


def read_request(body: bytes) -> AddCheckpoint:
    """Return the request with this body.

    Raises: WitnessRefusal.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise WitnessRefusal(400, "the request is not UTF-8\n") from None
    head, blank, checkpoint = text.partition("\n\n")
    first, *lines = head.split("\n")
    match = _OLD.fullmatch(first)
    try:
        proof = tuple(map(decode, lines))
        signed = parse_checkpoint(checkpoint)
    except NotANote as error:
        raise WitnessRefusal(400, f"the request {error}\n") from None
    if match is None or not blank or len(proof) > _PROOF_MAX or any(len(each) != HASH_BYTES for each in proof):
        raise WitnessRefusal(400, "the request is malformed\n")
    return AddCheckpoint(int(match[1]), proof, signed)


def judge(request: AddCheckpoint, keys: Sequence[VerifierKey], known: Checkpoint | None) -> None:
    """Accept a checkpoint of a log with these keys, of which `known` was the last that was accepted.

    Raises: WitnessRefusal.
    """
    checkpoint = request.signed.checkpoint
    if not keys:
        raise WitnessRefusal(404, "this witness does not know the log\n")
    try:
        verify_checkpoint(str(request.signed.note), keys)
    except NotANote as error:
        raise WitnessRefusal(403, f"the checkpoint {error}\n") from None
    if request.old_size > checkpoint.size:
        raise WitnessRefusal(400, "the old size is larger than the checkpoint\n")
    known_size, known_root = (0, EMPTY_ROOT) if known is None else (known.size, known.root)
    if request.old_size != known_size:
        raise WitnessRefusal(409, f"{known_size}\n", SIZE_TYPE)
    if not extends(known_size, known_root, checkpoint.size, checkpoint.root, request.proof):
        raise WitnessRefusal(422, "the checkpoint does not extend what this witness has seen\n")
