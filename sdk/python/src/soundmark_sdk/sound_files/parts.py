"""Find every sound in a file, whatever stands before, between and after them."""

import re
from collections.abc import Iterator
from typing import Final

from soundmark_sdk.sound_files import flac, ogg
from soundmark_sdk.sound_files.byte_source import ByteSource
from soundmark_sdk.sound_files.flac import find_flac
from soundmark_sdk.sound_files.mpeg import find_frames, find_free, find_mpeg
from soundmark_sdk.sound_files.ogg import find_ogg
from soundmark_sdk.sound_files.part import SEARCHED_BYTES, STARTS, Part
from soundmark_sdk.sound_files.tags import skip_tags
from soundmark_sdk.sound_files.wav import find_wav, is_wav

# AAC without a container begins as MPEG does, with a layer of 0.
_ADTS: Final = frozenset({b"\xf0", b"\xf1", b"\xf8", b"\xf9"})
_ADTS_RATES: Final = 13
# Files that may contain sound of the kinds that are read, and are not read: by how their first 12 bytes begin or go on.
_OTHER_KINDS: Final = {
    re.compile(rb"\x1a\x45\xdf\xa3", re.DOTALL): "a WebM or Matroska file",
    re.compile(rb"FORM....AIF[CF]", re.DOTALL): "an AIFF file",
    re.compile(rb"caff\x00[\x01\x02]", re.DOTALL): "a CAF file",
    re.compile(rb"riff\x2e\x91", re.DOTALL): "a Wave64 file",
    re.compile(rb"\x30\x26\xb2\x75", re.DOTALL): "a WMA file",
    re.compile(rb"#!AMR", re.DOTALL): "an AMR file",
    re.compile(rb"\.snd\x00", re.DOTALL): "an AU file",
    re.compile(rb"PK\x03\x04", re.DOTALL): "a ZIP file",
    re.compile(rb"....ftypqt", re.DOTALL): "a QuickTime file",
    re.compile(
        rb"....ftyp(?!hei|hev|mif|msf|avi[fs]|crx)", re.DOTALL
    ): "an MP4 file (such as M4A)",  # Pictures have such brands.
    re.compile(rb"\x00...(?:moov|mdat|wide|free|skip|styp|sidx)", re.DOTALL): "an MP4 or QuickTime file",
}


def find_parts(source: ByteSource) -> Iterator[Part]:
    """Yield the sounds in a file, in order. There is none in a file of another kind."""
    at = skip_tags(source, 0)
    if _match_kind(source, at) is not None:
        return
    while at < source.size:
        parts, end = _read_parts(source, at)
        yield from parts
        at = skip_tags(source, end) if parts else _find_start(source, at + 1)


def _find_start(source: ByteSource, at: int) -> int:
    """Return the next place where a sound may begin, or the end. A recorded stream may begin in the middle of one."""
    place = next(source.search(ogg.PAGES, at, at + SEARCHED_BYTES), source.size)
    end = min(place, at + SEARCHED_BYTES)
    return min(place, find_frames(source, at, end), find_free(source, at, end))


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


def name_kind(source: ByteSource) -> str | None:
    """Return what kind of file this is, if it is a common one that is not read."""
    at = skip_tags(source, 0)
    return _match_kind(source, at) or ("an AAC file" if _is_adts(source, at) else None)


def _match_kind(source: ByteSource, at: int) -> str | None:
    """Return the kind of a file after its tags; an MP4 file begins with some of the zeros before this place."""
    starts = [source.read(place, 12) for place in range(max(0, at - 4), at + 1)]
    kinds = (name for form, name in _OTHER_KINDS.items() for each in starts if form.match(each))
    return next(kinds, None)


def _is_adts(source: ByteSource, at: int) -> bool:
    """Return whether a frame of AAC begins here, and after it another one or the end. A frame of FLAC begins alike."""
    header = source.read(at, 7)
    if len(header) < 7 or header[:1] != b"\xff" or header[1:2] not in _ADTS:  # noqa: PLR2004 - the size of a header
        return False
    size = int.from_bytes(header[3:6], "big") >> 5 & 0x1FFF
    following = source.read(at + size, 2)
    return (header[2] >> 2 & 0xF) < _ADTS_RATES and size >= len(header) and header.startswith(following)
