"""Find every sound in a file, whatever stands before, between and after them."""

from collections.abc import Iterator
from typing import Final

from soundmark_sdk.sound_files import flac, ogg
from soundmark_sdk.sound_files.byte_source import ByteSource
from soundmark_sdk.sound_files.flac import find_flac
from soundmark_sdk.sound_files.mpeg import find_frames, find_mpeg
from soundmark_sdk.sound_files.ogg import find_ogg
from soundmark_sdk.sound_files.part import SEARCHED_BYTES, STARTS, Part
from soundmark_sdk.sound_files.tags import skip_tags
from soundmark_sdk.sound_files.wav import find_wav, is_wav

# AAC without a container begins as MPEG does, with a layer of 0.
_ADTS: Final = frozenset({b"\xf0", b"\xf1", b"\xf8", b"\xf9"})
# Files that may contain sound of the kinds that are read, and are not read.
_OTHER_KINDS: Final = {
    b"\x1aE\xdf\xa3": "a WebM or Matroska file",
    b"FORM": "an AIFF file",
    b"caff": "a CAF file",
    b"riff": "a Wave64 file",
    b"\x30\x26\xb2\x75": "a WMA file",
    b"#!AM": "an AMR file",
    b".snd": "an AU file",
    b"PK\3\4": "a ZIP file",
}


def find_parts(source: ByteSource) -> Iterator[Part]:
    """Yield the sounds in a file, in order. There is none in a file of another kind."""
    at = skip_tags(source, 0)
    if source.read(at, 12)[4:8] == b"ftyp" or source.read(at, 4) in _OTHER_KINDS:
        return
    while at < source.size:
        parts, end = _read_parts(source, at)
        yield from parts
        at = skip_tags(source, end) if parts else _find_start(source, at + 1)


def _find_start(source: ByteSource, at: int) -> int:
    """Return the next place where a sound may begin, or the end."""
    place = next(source.search(STARTS, at, at + SEARCHED_BYTES), source.size)
    return min(place, find_frames(source, at, min(place, at + SEARCHED_BYTES)))


def _read_parts(source: ByteSource, at: int) -> tuple[list[Part], int]:
    """Return the sounds that begin here, and where they end; nothing if none begin here."""
    start = source.read(at, 12)
    next_starts = source.search(STARTS, at + 1)
    if is_wav(start):
        return find_wav(source, at, next_starts)
    if start.startswith(flac.MAGIC):
        return find_flac(source, at, next_starts)
    if start.startswith(ogg.MAGIC):
        return find_ogg(source, at)
    return find_mpeg(source, at)


def name_kind(start: bytes) -> str | None:
    """Return what kind of file begins with these 12 bytes, if it is a common one that is not read."""
    if start[4:8] == b"ftyp":
        return "an MP4 file (M4A, AAC)"
    if start[:1] == b"\xff" and start[1:2] in _ADTS:
        return "an AAC file"
    return _OTHER_KINDS.get(start[:4])
