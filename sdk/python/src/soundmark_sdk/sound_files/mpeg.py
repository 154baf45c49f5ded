"""MP3 and MP2: the frames of a file or of a stream, wherever it begins and whatever stands between them."""

import re
import struct
from dataclasses import dataclass
from itertools import islice
from typing import Final

from soundmark_sdk.sound_files.byte_source import ByteSource, ByteView
from soundmark_sdk.sound_files.part import STARTS, Part
from soundmark_sdk.sound_files.tags import skip_tags

# A frame, or a file of another kind.
# The third byte of a header: bit rates 1 to 14, and sample rates 0 to 2.
_RATES: Final = b"".join(rb"\x%x0-\x%xb" % (bit_rate, bit_rate) for bit_rate in range(1, 15))
_STARTS: Final = re.compile(rb"\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff][" + _RATES + rb"]|" + STARTS.pattern)
# A frame of the free format, of layer II or III.
_FREE: Final = re.compile(rb"\xff[\xe2-\xe5\xf2-\xf5\xfa-\xfd][\0-\x0b]")
_FREE_BYTES: Final = (48, 8192)
# Between frames: more than a picture that no tag announces, and little enough to search.
_GAP_BYTES_MAX: Final = 1 << 20
# Chance makes 200 headers in a megabyte; more are hostile.
_TRIES_MAX: Final = 4096
_HEADER_BYTES: Final = 4
# Frames in a row that prove that a header is one: by chance, two bytes look like one in every few kilobytes.
_PROOF: Final = 3
# MPEG-1, MPEG-2 and MPEG-2.5, each with half of the rates of the one before.
_VERSIONS: Final = {3: 0, 2: 1, 0: 2}
_LAYERS: Final = (1, 2, 3)
# kbit/s, by version, layer and index from 1; 0 is the free format: ISO/IEC 11172-3, 2.4.2.3, and 13818-3, 2.4.2.3.
_BIT_RATES: Final = {
    (0, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (0, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (0, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (1, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (1, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (1, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_FREE_BIT_RATE, _NO_BIT_RATE = 0, 15
_RATES_HZ: Final = (44_100, 48_000, 32_000)
_MONO: Final = 3
_SYNC_BITS: Final = 0x7FF
_HAS_NO_CHECKSUM: Final = 0x01
# Where the first frame has the name of a table of contents, by MPEG-1 and mono. That of VBRI is always at 36.
_XING_AT: Final = {(True, False): 36, (True, True): 21, (False, False): 21, (False, True): 13}
_VBRI_AT: Final = 36
_XING_HAS_COUNT: Final = 1
# A bit rate at which a table of contents has room: 64 kbit/s, or 40 where the rate is lower.
_XING_BIT_RATE: Final = 5


@dataclass(frozen=True, slots=True)
class _Format:
    """What all frames of one sound share."""

    version: int
    layer: int
    rate_hz: int
    is_mono: bool


@dataclass(frozen=True, slots=True)
class _Frame:
    form: _Format
    size: int


def find_mpeg(source: ByteSource, at: int) -> tuple[list[Part], int]:
    """Return the sound of the frames that begin here, and where they end; nothing if none begin here.

    They end at a frame of another format, or at a file of another kind. What stands between them is skipped.
    """
    first = _read_proven(source, at)
    if first is None or at + first.size > source.size:
        return _find_free(source, at)
    start, runs, frame_count = at, [(at, 0)], 0
    frame: _Frame | None = first
    while frame is not None and frame.form == first.form and at + frame.size <= source.size:
        if runs[-1][0] + runs[-1][1] != at:
            runs.append((at, 0))
        runs[-1] = (runs[-1][0], runs[-1][1] + frame.size)
        frame_count += 1
        at += frame.size
        frame = _read_frame(source, at)
        if frame is None or frame.form != first.form:
            at = skip_tags(source, at)
            at = find_frames(source, at, at + _GAP_BYTES_MAX)
            frame = _read_frame(source, at)
    if _has_contents(source, start, first.form):
        # It counts the frames of one file, and another may be joined to it.
        runs[0] = (start + first.size, runs[0][1] - first.size)
        frame_count -= 1
    content = ByteView(source, _make_contents(source.read(start, _HEADER_BYTES), first.form, frame_count))
    for run in runs:
        content.append(*run)
    return [Part("MP3", content, codec="MP3")], at


def find_frames(source: ByteSource, at: int, end: int) -> int:
    """Return the next place before an end at which frames begin, or else the end of the source.

    A file of another kind may begin before it, which ends the search too.
    """
    for place in islice(source.search(_STARTS, at, end), _TRIES_MAX):
        if source.read(place, 1) != b"\xff" or _read_proven(source, place) is not None:
            return place
    return source.size


def _read_proven(source: ByteSource, at: int) -> _Frame | None:
    """Return the frame that begins here if more of its kind follow, or the end."""
    first = frame = _read_frame(source, at)
    for _ in range(_PROOF - 1):
        if first is None or frame is None or frame.form != first.form:
            return None
        at = skip_tags(source, at + frame.size)
        if at >= source.size:
            break
        frame = _read_frame(source, at)
    return first if frame is not None and first is not None and frame.form == first.form else None


def _read_frame(source: ByteSource, at: int) -> _Frame | None:
    """Return the frame whose header begins here: ISO/IEC 11172-3, 2.4.1.3. It may end after the source."""
    header = int.from_bytes(source.read(at, _HEADER_BYTES), "big")
    version, layer = _VERSIONS.get(header >> 19 & 3), 4 - (header >> 17 & 3)
    bit_rate, rate = header >> 12 & 0xF, header >> 10 & 3
    if header >> 21 != _SYNC_BITS or version is None or layer not in _LAYERS or rate == len(_RATES_HZ):
        return None
    if bit_rate in {_FREE_BIT_RATE, _NO_BIT_RATE}:
        return None
    form = _Format(version, layer, _RATES_HZ[rate] >> version, header >> 6 & 3 == _MONO)
    return _Frame(form, _measure_frame(form, bit_rate, header >> 9 & 1))


def _measure_frame(form: _Format, bit_rate: int, padding: int) -> int:
    bits_per_s = 1000 * _BIT_RATES[min(form.version, 1), form.layer][bit_rate - 1]
    if form.layer == 1:
        return (12 * bits_per_s // form.rate_hz + padding) * 4
    # A frame of layer III has half as many samples from MPEG-2 on.
    samples_per_byte = 72 if form.layer == max(_LAYERS) and form.version else 144
    return samples_per_byte * bits_per_s // form.rate_hz + padding


def _has_contents(source: ByteSource, at: int, form: _Format) -> bool:
    """Return whether a frame is the table of contents that some encoders put first, and no sound."""
    place = _XING_AT[form.version == 0, form.is_mono]
    return source.read(at + place, 4) in {b"Xing", b"Info"} or source.read(at + _VBRI_AT, 4) == b"VBRI"


def _make_contents(header: bytes, form: _Format, frame_count: int) -> bytes:
    """Return a frame that tells libmpg123 how many follow; it would guess, and read no further."""
    if form.layer != max(_LAYERS):
        return b""
    first = bytes([header[0], header[1] | _HAS_NO_CHECKSUM, _XING_BIT_RATE << 4 | header[2] & 0x0C, header[3]])
    content = first + bytes(_XING_AT[form.version == 0, form.is_mono] - len(first))
    content += b"Xing" + struct.pack(">II", _XING_HAS_COUNT, frame_count)
    return content.ljust(_measure_frame(form, _XING_BIT_RATE, 0), b"\0")


def find_free(source: ByteSource, at: int, end: int) -> int:
    """Return the next place before an end at which frames of the free format begin, or else the end of the source.

    Three headers that are alike and as far apart prove them.
    """
    least, most = _FREE_BYTES
    for place in islice(source.search(_FREE, at, end), _TRIES_MAX):
        content = source.read(place, 2 * most)
        size = content.find(content[:3], 1, most)
        if size >= least and content.startswith(content[:3], 2 * size):
            return place
    return source.size


def _find_free(source: ByteSource, at: int) -> tuple[list[Part], int]:
    """Return everything from here on if it seems to be of the free format, whose frames only libmpg123 can measure."""
    header = int.from_bytes(source.read(at, _HEADER_BYTES), "big")
    if header >> 21 != _SYNC_BITS or not header >> 17 & 3 or header >> 12 & 0xF != _FREE_BIT_RATE:
        return [], at
    content = ByteView(source)
    content.append(at, source.size - at)
    return [Part("MP3", content, codec="MP3")], source.size
