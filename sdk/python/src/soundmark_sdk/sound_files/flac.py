"""FLAC: files, and streams of unknown length."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, Final, cast

from soundmark_sdk.sound_files.byte_source import ByteSource, ByteView
from soundmark_sdk.sound_files.part import Kind, Part, make_broken_part, make_unreadable_part

MAGIC: Final = b"fLaC"
_STREAMINFO_BYTES: Final = 34
_FIELDS_AT: Final = 10
_BLOCK_HEADER_BYTES: Final = 4
_IS_LAST: Final = 0x80
_FRAME: Final = re.compile(rb"\xff[\xf8\xf9]")
_TRIES_MAX: Final = 1 << 16  # Chance makes one in 32 kB; more are hostile.
_NUMBER_AT: Final = 4
_FRAME_HEADER_BYTES_MAX: Final = 16
# Bytes at the end of a frame's header, by codes in its third byte: of the block's size, and of the rate.
_SIZE_BYTES: Final = {6: 1, 7: 2}
_RATE_BYTES: Final = {12: 1, 13: 2, 14: 2}
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


def find_frame(content: ByteView, at: int, first: int) -> tuple[int, int] | None:
    """Return the next frame in such a content that begins with a sample or a later one: its place, and that sample."""
    source = _open_content(content)
    at = max(at, len(content.header))
    block_at = len(MAGIC) + _BLOCK_HEADER_BYTES + 2
    block = int.from_bytes(content.header[block_at : block_at + 2], "big")
    for place in islice(source.search(_FRAME, at), _TRIES_MAX):
        header = source.read(place, _FRAME_HEADER_BYTES_MAX)
        number = _read_number(header)
        if number is not None:
            # Blocks of one size are counted, those of several by their first sample: RFC 9639, 9.1.
            sample = number if header[1] & 1 else number * block
            if sample >= first:
                return place, sample
    return None


def cut_before(content: ByteView, at: int) -> ByteView:
    """Return such a content without what is before a place, except for its header."""
    source = _open_content(content)
    rest = ByteView(source, content.header)
    rest.append(at, source.size - at)
    return rest


def _open_content(content: ByteView) -> ByteSource:
    content.seek(0)
    return ByteSource(cast("BinaryIO", content))


def _read_number(header: bytes) -> int | None:
    """Return the number in the header of a frame, None if its checksum is wrong: RFC 9639, 9.1."""
    if len(header) < _FRAME_HEADER_BYTES_MAX:
        return None
    ones = f"{header[_NUMBER_AT]:08b}1".index("0") if header[_NUMBER_AT] != 0xFF else 0  # noqa: PLR2004 - no number
    count = max(1, ones)
    end = _NUMBER_AT + count + _SIZE_BYTES.get(header[2] >> 4, 0) + _RATE_BYTES.get(header[2] & 0xF, 0)
    if _compute_checksum(header[:end]) != header[end]:
        return None
    number = header[_NUMBER_AT] & (0x7F >> ones)
    for byte in header[_NUMBER_AT + 1 : _NUMBER_AT + count]:
        number = number << 6 | byte & 0x3F
    return number


def _compute_checksum(header: bytes) -> int:
    checksum = 0
    for byte in header:
        checksum ^= byte
        for _ in range(8):
            checksum = checksum << 1 & 0xFF ^ (0x07 if checksum & 0x80 else 0)
    return checksum
