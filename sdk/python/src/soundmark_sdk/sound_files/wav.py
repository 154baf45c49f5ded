"""WAV: RIFF, RIFX, RF64 and BW64, with whatever sizes their recorder left in them."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from soundmark_sdk.sound_files.byte_source import ByteSource, ByteView
from soundmark_sdk.sound_files.part import Part, make_broken_part, make_unreadable_part

MAGIC: Final = frozenset({b"RIFF", b"RIFX", b"RF64", b"BW64"})
_OTHER_STARTS: Final = MAGIC | {b"fLaC", b"OggS", b"APET"}
_NAME: Final = re.compile(rb"[ -~]{4}")
_NONZERO: Final = re.compile(rb"[^\0]")
_RIFF_BYTES: Final = 12
_CHUNK_BYTES: Final = 8
_FORMAT_BYTES_MIN: Final = 14
_FORMAT_BYTES_MAX: Final = 1024
_SIZE_MAX: Final = 0xFFFF_FFFF
# Of 48 kHz, 16 bits and one channel: half a second that a recorder did not live to add to the size.
_FORGOTTEN_BYTES_MIN: Final = 48_000
_EXTENSIBLE: Final = 0xFFFE
_ENCODINGS: Final = {
    0x02: "Microsoft ADPCM",
    0x06: "A-law",
    0x07: "µ-law",
    0x11: "IMA ADPCM",
    0x31: "GSM 6.10",
    0x50: "MPEG",
    0x55: "MP3",
    0xFF: "AAC",
    0x1610: "AAC",
    0x2000: "AC-3",
}
_FLOAT: Final = 3
_READABLE: Final = {1: frozenset({8, 16, 24, 32}), _FLOAT: frozenset({32, 64})}
_CHANNELS_MAX: Final = 1024
_Order: TypeAlias = Literal["big", "little"]


@dataclass(frozen=True, slots=True)
class _Chunk:
    name: bytes
    at: int
    size: int


def is_wav(start: bytes) -> bool:
    """Return whether the first 12 bytes are those of a WAV file."""
    return start[:4] in MAGIC and start[8:12] == b"WAVE"


def find_wav(source: ByteSource, at: int, next_starts: Iterator[int]) -> tuple[list[Part], int]:
    """Return the sound of the WAV file that begins here, and where it ends.

    `next_starts` yields the later places where another file begins. It is used only where the size is unknown.
    """
    magic = source.read(at, 4)
    order: _Order = "big" if magic == b"RIFX" else "little"
    form: bytes | None = None
    data: list[_Chunk] = []
    long_size = 0
    place = at + _RIFF_BYTES
    while (chunk := _read_chunk(source, place, order, has_data=bool(data))) is not None:
        if chunk.name == b"ds64":
            # The sizes of the file, of the data, and more: EBU Tech 3306.
            long_size = int.from_bytes(source.read(chunk.at + 8, 8), "little")
        elif chunk.name == b"fmt " and form is None:
            form = source.read(chunk.at, min(chunk.size, _FORMAT_BYTES_MAX))
        elif chunk.name == b"data":
            size = _measure_data(source, chunk, order, long_size, next_starts)
            chunk = _Chunk(chunk.name, chunk.at, size)
            data.append(chunk)
        elif data and (chunk.name in _OTHER_STARTS or chunk.at + chunk.size > source.size):
            break
        place = chunk.at + chunk.size
        place += _count_padding(source, place, chunk.size)
    end = min(place, source.size)
    if not data or form is None or len(form) < _FORMAT_BYTES_MIN:
        return [make_broken_part("WAV")], end
    return [_make_part(source, magic, order, form, data)], end


def _read_chunk(source: ByteSource, at: int, order: _Order, *, has_data: bool) -> _Chunk | None:
    """Return the chunk that begins here. Before the data, it may have any name, and zeros may stand before it."""
    header = source.read(at, _CHUNK_BYTES)
    if not has_data and header.startswith(b"\0"):
        at = next(source.search(_NONZERO, at), source.size)
        header = source.read(at, _CHUNK_BYTES)
    if len(header) < _CHUNK_BYTES:
        return None
    chunk = _Chunk(header[:4], at + _CHUNK_BYTES, int.from_bytes(header[4:], order))
    if chunk.name == b"LIST" and source.read(chunk.at, 4) == b"wavl":
        # The data may be a list of chunks: Multimedia Programming Interface and Data Specifications 1.0, "Wave Data".
        return _Chunk(chunk.name, chunk.at, 4)
    is_odd = not _is_name(chunk.name)
    return None if is_odd and (has_data or chunk.at + chunk.size > source.size) else chunk


def _is_name(name: bytes) -> bool:
    return _NAME.fullmatch(name) is not None


def _count_padding(source: ByteSource, place: int, size: int) -> int:
    """Return 1 where a byte makes the size of a chunk even; some programs leave it out."""
    return 1 if size % 2 and not _is_name(source.read(place, 4)) else 0


def _measure_data(source: ByteSource, chunk: _Chunk, order: _Order, long_size: int, next_starts: Iterator[int]) -> int:
    """Return how many bytes of data there are, whatever the file says: recorders crash, and streams have no size."""
    rest = source.size - chunk.at
    claimed = long_size if chunk.size == _SIZE_MAX else chunk.size
    if claimed <= rest:
        is_whole = claimed > 0 and rest - claimed < _FORGOTTEN_BYTES_MIN
        if is_whole or not rest or _is_followed(source, chunk.at + claimed, claimed, order):
            return claimed
    end = next((place for place in next_starts if place > chunk.at), source.size)
    return end - chunk.at


def _is_followed(source: ByteSource, place: int, size: int, order: _Order) -> bool:
    """Return whether a chunk, a tag or another file begins where the data should end."""
    place += _count_padding(source, place, size)
    header = source.read(place, _CHUNK_BYTES)
    if header[:3] in {b"ID3", b"TAG"} or header[:4] in _OTHER_STARTS:
        return True
    return _is_name(header[:4]) and place + _CHUNK_BYTES + int.from_bytes(header[4:], order) <= source.size


def _make_part(source: ByteSource, magic: bytes, order: _Order, form: bytes, data: list[_Chunk]) -> Part:
    def read_number(at: int, size: int = 2) -> int:
        return int.from_bytes(form[at : at + size], order)

    tag, channels, rate, bits = read_number(0), read_number(2), read_number(4, 4), read_number(14)
    if not channels or not rate:
        return make_broken_part("WAV")
    # The subformat of an extensible format begins with the tag.
    encoding = read_number(24) if tag == _EXTENSIBLE and len(form) >= 26 else tag  # noqa: PLR2004 - 24 and its size
    if encoding not in _READABLE:
        return make_unreadable_part("WAV", _ENCODINGS.get(encoding, f"format 0x{encoding:04X}"))
    container_bits = 8 * read_number(12) // channels
    if bits not in _READABLE[encoding] and container_bits not in _READABLE[encoding]:
        return make_unreadable_part("WAV", f"{'floats' if encoding == _FLOAT else 'samples'} of {bits} bits")
    if channels > _CHANNELS_MAX:
        return make_unreadable_part("WAV", f"{channels} channels")
    content = ByteView(source, _make_header(magic, order, form, sum(chunk.size for chunk in data)))
    for chunk in data:
        content.append(chunk.at, chunk.size)
    return Part("WAV", content)


def _make_header(magic: bytes, order: _Order, form: bytes, size: int) -> bytes:
    """Return a header with true sizes, which libsndfile needs."""
    form += bytes(len(form) % 2)
    head = b"fmt " + len(form).to_bytes(4, order) + form + b"data"
    if size <= _SIZE_MAX - _FORMAT_BYTES_MAX:
        magic = b"RIFX" if magic == b"RIFX" else b"RIFF"
        return magic + (8 + len(head) + size).to_bytes(4, order) + b"WAVE" + head + size.to_bytes(4, order)
    sizes = b"ds64" + struct.pack("<IQQQI", 28, 44 + len(head) + size, size, 0, 0)
    return b"RF64" + b"\xff" * 4 + b"WAVE" + sizes + head + b"\xff" * 4
