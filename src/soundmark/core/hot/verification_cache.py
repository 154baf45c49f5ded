"""Which bytes were verified already, in a fixed amount of memory."""

import hashlib
import mmap
from typing import Final

from soundmark.kit.crypto.entropy import Entropy

_SETS: Final = 1 << 21  # Of two tags each: room for a million Codes, of which 97 in 100 stay (bench/RESULTS.md).
_TAG_BYTES: Final = 8
_KEY_BYTES: Final = 32


class VerificationCache:
    """A set of byte strings that forgets: 32 MiB at most, taken as it fills, and nothing for a collector to walk.

    Kept of each is a tag of 64 bits in one of two places, chosen by 21 further bits of the same SHA-256. The digest
    begins with a secret that no other process knows, so that nobody can look for bytes that share a tag with others;
    bytes that were never added are taken for known once in 2^63 tries, and each failing try raises an alarm.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._keyed: Final = hashlib.sha256(entropy.take(_KEY_BYTES))
        self._tags: Final = memoryview(mmap.mmap(-1, _SETS * 2 * _TAG_BYTES)).cast("Q")

    def tag(self, *parts: bytes) -> tuple[int, int]:
        """Where `parts`, of which all but the last have a fixed length, are remembered, and as what."""
        digest = self._keyed.copy()
        digest.update(b"".join(parts))
        number = int.from_bytes(digest.digest()[:16], "little")
        # No tag is zero, which is what an empty place holds.
        return (number >> 64) % _SETS * 2, number & 0xFFFF_FFFF_FFFF_FFFF or 1

    def holds(self, place: int, tag: int) -> bool:
        """Whether what has this tag was added and is not forgotten."""
        return self._tags[place] == tag or self._tags[place + 1] == tag

    def add(self, place: int, tag: int) -> None:
        """Remember it; of three that share a place, the one that was added first is forgotten."""
        self._tags[place + 1] = self._tags[place]
        self._tags[place] = tag
