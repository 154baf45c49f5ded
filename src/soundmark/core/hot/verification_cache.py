"""A cache of byte strings that were verified, in a fixed amount of memory."""

import hashlib
import mmap
from typing import Final

from soundmark.kit.crypto.entropy import Entropy

_SETS: Final = 1 << 21  # Two tags each: of a million Codes, 97 in 100 are kept (bench/MEASURED.md).
_TAG_BYTES: Final = 8
_KEY_BYTES: Final = 32


class VerificationCache:
    """A lossy set of byte strings: at most 32 MiB, allocated as it fills, and invisible to the garbage collector.

    Each entry is a tag of 64 bits in one of two places, which are chosen by 21 further bits of the same SHA-256 digest.
    The digest begins with a secret of this process, so that nobody can search for bytes that share a tag. Unknown bytes
    are taken for known once in 2^63 tries, and each failed try is reported.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._keyed: Final = hashlib.sha256(entropy.take(_KEY_BYTES))
        self._tags: Final = memoryview(mmap.mmap(-1, _SETS * 2 * _TAG_BYTES)).cast("Q")

    def tag(self, *parts: bytes) -> tuple[int, int]:
        """Return the place and the tag of `parts`, all but the last of which must have a fixed length."""
        digest = self._keyed.copy()
        digest.update(b"".join(parts))
        number = int.from_bytes(digest.digest()[:16], "little")
        # A tag is never zero, because zero marks an empty place.
        return (number >> 64) % _SETS * 2, number & 0xFFFF_FFFF_FFFF_FFFF or 1

    def holds(self, place: int, tag: int) -> bool:
        """Return whether this tag was added and not evicted."""
        return self._tags[place] == tag or self._tags[place + 1] == tag

    def add(self, place: int, tag: int) -> None:
        """Add a tag. If both slots of the place are taken, the older tag is evicted."""
        self._tags[place + 1] = self._tags[place]
        self._tags[place] = tag
