"""The end of an archive: its verification keys, its counts and its seal, which are read before everything else."""

import re
from dataclasses import dataclass
from typing import BinaryIO, Final

from soundmark_sdk import strict_json
from soundmark_sdk.archive.failures import ArchiveRejected
from soundmark_sdk.archive.shapes import SEAL
from soundmark_sdk.closed_shapes import find_misfit
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.keys import KeySet, collect_historic_keys
from soundmark_sdk.strict_json import JsonValue

# A thousand keys, the most that a key set has, of half a KiB each, twice over.
ENDING_BYTES_MAX: Final = 1024 * 1024

_SEAL: Final = b',"seal":'
# It begins with the comma: a pattern that begins with spaces could match slowly.
_KEYS: Final = re.compile(rb',[ \t\r\n]*"verification_keys"[ \t\r\n]*:')


@dataclass(frozen=True, slots=True)
class ArchiveSeal:
    """What Core signed about the bytes of a file. `members` is the whole object, with its signature."""

    format: str
    subject_id: str
    exported_at: str
    digest: str
    key_id: str
    members: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ArchiveEnding:
    """The end of an archive.

    `keys_start` is the offset at which the records before it end, `seal_start` the number of bytes that the seal
    covers, and `unread` the bytes in between.
    """

    seal: ArchiveSeal
    seal_start: int
    keys: KeySet
    counts: JsonValue
    keys_start: int
    unread: bytes


def read_ending(file: BinaryIO) -> ArchiveEnding:
    """Return the end of an archive. Nothing of it is verified yet.

    Raises: ArchiveRejected; OSError.
    """
    size = file.seek(0, 2)
    offset = file.seek(max(0, size - ENDING_BYTES_MAX))
    text = file.read(ENDING_BYTES_MAX)
    body = text.removesuffix(b"\n")
    seal_at = body.rfind(_SEAL)
    if seal_at < 0 or not body.endswith(b"}"):
        raise ArchiveRejected("seal_missing", "seal")
    seal = _read_seal(body[seal_at + len(_SEAL) : -1])
    found = _find_last(_KEYS, body[:seal_at])
    if found is None:
        raise ArchiveRejected("keys_malformed", "verification_keys")
    keys, counts = _read_keys(body[found.end() : seal_at])
    return ArchiveEnding(
        seal=seal,
        seal_start=offset + seal_at,
        keys=keys,
        counts=counts,
        keys_start=offset + found.start(),
        unread=body[found.start() : seal_at],
    )


def _find_last(pattern: re.Pattern[bytes], text: bytes) -> re.Match[bytes] | None:
    last = None
    for last in pattern.finditer(text):  # noqa: B007 - the last one is the point
        pass
    return last


def _read_seal(text: bytes) -> ArchiveSeal:
    try:
        members = strict_json.parse(text)
    except Unverifiable:
        raise ArchiveRejected("seal_malformed", "seal") from None
    misfit = find_misfit(members, SEAL, "seal")
    if misfit is not None:
        raise ArchiveRejected("seal_malformed", misfit)
    assert isinstance(members, dict), "a seal is an object"
    return ArchiveSeal(
        format=str(members["format"]),
        subject_id=str(members["subject_id"]),
        exported_at=str(members["exported_at"]),
        digest=str(members["digest"]),
        key_id=str(members["key_id"]),
        members=members,
    )


def _read_keys(text: bytes) -> tuple[KeySet, JsonValue]:
    """Return the keys, and the counts that follow them."""
    try:
        members = strict_json.parse(b'{"verification_keys":' + text + b"}")
        assert isinstance(members, dict), "braces make an object"
        keys = collect_historic_keys(members["verification_keys"])
    except Unverifiable:
        raise ArchiveRejected("keys_malformed", "verification_keys") from None
    if list(members) != ["verification_keys", "counts"]:
        raise ArchiveRejected("wrong_shape", "counts")
    return keys, members["counts"]
