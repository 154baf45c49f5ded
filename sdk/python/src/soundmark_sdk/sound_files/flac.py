"""FLAC: files, and streams of unknown length."""

from collections.abc import Iterator
from typing import Final

from soundmark_sdk.sound_files.byte_source import ByteSource, ByteView
from soundmark_sdk.sound_files.part import Kind, Part, make_broken_part, make_unreadable_part

MAGIC: Final = b"fLaC"
_STREAMINFO_BYTES: Final = 34
_FIELDS_AT: Final = 10
_BLOCK_HEADER_BYTES: Final = 4
_IS_LAST: Final = 0x80
_READABLE_BITS: Final = frozenset({8, 16, 24})


def find_flac(source: ByteSource, at: int, next_starts: Iterator[int]) -> tuple[list[Part], int]:
    """Return the sound of the FLAC file that begins here, and where it ends: at the next file, if one is joined."""
    head = source.read(at, len(MAGIC) + _BLOCK_HEADER_BYTES + _STREAMINFO_BYTES)
    end = next((place for place in next_starts if place > at), source.size)
    part = make_flac_part(source, "FLAC", head[len(MAGIC) + _BLOCK_HEADER_BYTES :])
    if part.content is not None:
        first = _find_frames(source, at + len(MAGIC))
        part.content.append(first, end - first)
    return [part], end


def _find_frames(source: ByteSource, at: int) -> int:
    """Return the place after the blocks of metadata."""
    while len(header := source.read(at, _BLOCK_HEADER_BYTES)) == _BLOCK_HEADER_BYTES:
        at += _BLOCK_HEADER_BYTES + int.from_bytes(header[1:], "big")
        if header[0] & _IS_LAST:
            break
    return at


def make_flac_part(source: ByteSource, kind: Kind, streaminfo: bytes) -> Part:
    """Return a part with this STREAMINFO, whose content has no frame yet."""
    if len(streaminfo) < _STREAMINFO_BYTES:
        return make_broken_part(kind)
    # 20 bits of the rate, 3 of the channels, 5 of the sample size and 36 of the number of samples: RFC 9639, 8.2.
    fields = int.from_bytes(streaminfo[_FIELDS_AT : _FIELDS_AT + 8], "big")
    bits = (fields >> 36 & 0x1F) + 1
    if not fields >> 44:
        return make_broken_part(kind)
    if bits not in _READABLE_BITS:
        return make_unreadable_part(kind, f"FLAC, {bits} bits")
    # libsndfile reads no further than the number of samples, which a stream does not know. Then it is 0.
    unknown = (fields >> 36 << 36).to_bytes(8, "big") + bytes(16)
    block = bytes([_IS_LAST]) + _STREAMINFO_BYTES.to_bytes(3, "big") + streaminfo[:_FIELDS_AT] + unknown
    return Part(kind, ByteView(source, MAGIC + block), sample_count=(fields & (1 << 36) - 1) or None)


def write_length(content: ByteView, sample_count: int) -> None:
    """Write the number of samples into the content of such a part: a decoder needs it to read from any place."""
    at = len(MAGIC) + _BLOCK_HEADER_BYTES + _FIELDS_AT
    fields = int.from_bytes(content.header[at : at + 8], "big") | sample_count
    content.header = content.header[:at] + fields.to_bytes(8, "big") + content.header[at + 8 :]
