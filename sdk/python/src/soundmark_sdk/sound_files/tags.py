"""Skip what stands around sound: tags of ID3 and APE, and zeros."""

import re
from typing import Final

from soundmark_sdk.sound_files.byte_source import ByteSource

ID3_BYTES: Final = 10
_ID3_HAS_FOOTER: Final = 0x10
_ID3_SEVEN_BITS: Final = 0x7F
_ID3V1_BYTES: Final = 128
_APE_BYTES: Final = 32
_APE_IS_HEADER: Final = 1 << 29
_NONZERO: Final = re.compile(rb"[^\0]")


def skip_tags(source: ByteSource, at: int) -> int:
    """Return the place after every tag and zero that begins here."""
    while (after := _skip_one(source, at)) > at:
        at = after
    return at


def measure_id3(start: bytes) -> int:
    """Return the bytes of the ID3v2 tag that begins with these, its header and footer included; 0 if none does."""
    if start[:3] != b"ID3" or len(start) < ID3_BYTES or max(start[6:10]) > _ID3_SEVEN_BITS:
        return 0
    # The length is written in four groups of seven bits, without this header and a footer: ID3v2.4, 3.1.
    length = sum(byte << shift for byte, shift in zip(start[6:10], (21, 14, 7, 0), strict=True))
    return ID3_BYTES + length + (ID3_BYTES if start[5] & _ID3_HAS_FOOTER else 0)


def _skip_one(source: ByteSource, at: int) -> int:
    magic = source.read(at, _APE_BYTES)
    if length := measure_id3(magic):
        # A tag that would end after the file has a false length; what follows its header is searched instead.
        return at + (length if at + length <= source.size else ID3_BYTES)
    if magic[:3] == b"TAG" and source.size - at == _ID3V1_BYTES:
        return source.size
    if magic[:8] == b"APETAGEX" and len(magic) == _APE_BYTES:
        # The length leaves out this header, but not the footer: APEv2. A tag may also have a footer alone.
        length = int.from_bytes(magic[12:16], "little")
        is_header = int.from_bytes(magic[20:24], "little") & _APE_IS_HEADER
        return min(source.size, at + _APE_BYTES + (length if is_header else 0))
    if magic[:1] == b"\0":
        return next(source.search(_NONZERO, at), source.size)
    return at
