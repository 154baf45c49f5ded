"""Ogg: Vorbis, Opus and FLAC; several streams at once, or one after the other."""

import re
import zlib
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from soundmark_sdk.sound_files.byte_source import ByteSource, ByteView
from soundmark_sdk.sound_files.flac import make_flac_part
from soundmark_sdk.sound_files.mpeg import find_frames
from soundmark_sdk.sound_files.part import SEARCHED_BYTES, STARTS, Part, make_broken_part, make_unreadable_part

MAGIC: Final = b"OggS"
_HEADER_BYTES: Final = 27
_CHECKSUM_AT: Final = 22
_REVERSED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_IS_CONTINUED, _IS_FIRST = 0x01, 0x02
# What cannot be in a page.
_CUT: Final = re.compile(rb"OggS\0[\0-\7]|RIFF[\0-\xff]{4}WAVE")
# A page of any place in a stream, or a file of another kind.
PAGES: Final = re.compile(rb"OggS\0[\0-\7]|" + STARTS.pattern)
_DISORDER: Final = "The OGG file has pages whose time falls back; they cannot be read."
_UNDECODED: Final = "The OGG file has a sound that cannot be decoded: its beginning is missing, or it is broken."
_NO_TIMES: Final = "The OGG file has no sound, or its pages have no times, which decoding needs."
# Of one stream, whose time may fall back now and then.
_SOUNDS_MAX: Final = 64
_HEADER_PAGES_MAX: Final = 4096
_HEADERS_BYTES_MAX: Final = 1 << 16
# How the first packet of a stream begins. Video, text and indexes are not listed: they are passed over.
_OPUS: Final = b"OpusHead"
_READABLE: Final = (b"\x01vorbis", _OPUS)
_FLAC: Final = (b"\x7fFLAC", b"fLaC")
_FLAC_INFO: Final = re.compile(rb"fLaC[\0\x80]\0\0\x22", re.DOTALL)
_FLAC_FRAME: Final = (b"\xff\xf8", b"\xff\xf9")
_UNREADABLE: Final = {b"Speex   ": "Speex", b"CELT    ": "CELT", b"PCM     ": "PCM", b"\x7fOMP": "MP3"}


@dataclass(frozen=True, slots=True)
class _Page:
    at: int
    body_at: int
    end: int
    flags: int
    position: int
    serial: bytes


@dataclass(slots=True)
class _Stream:
    """One logical stream: how its first packet begins, its headers, and its sounds so far, which begin with them.

    `has_ended` says that the next page begins a sound.
    """

    first: bytes
    header_pages: list[_Page] = field(default_factory=list)
    sounds: list[ByteView] = field(default_factory=list)
    position: int = 0
    has_ended: bool = True
    damaged_count: int = 0
    is_disordered: bool = False
    headers: bytearray = field(default_factory=bytearray)
    flac: Part | None = None


def find_ogg(source: ByteSource, at: int) -> tuple[list[Part], int]:
    """Return the sounds of the link that begins here, and where the next link or another file begins.

    A recorded stream has a link for each title. In a link, the pages of a sound and of pictures may alternate.
    """
    streams: dict[bytes, _Stream] = {}
    is_head, is_headless = True, False
    while (at := _find_page(source, at)) < source.size and source.read(at, len(MAGIC)) == MAGIC:
        page = _read_page(source, at)
        if page is None:
            at += len(MAGIC)
            continue
        if page.flags & _IS_FIRST:
            if not is_head:
                break
            streams[page.serial] = _Stream(source.read(page.body_at, 8))
        else:
            is_head = False
        is_headless |= not streams
        if page.serial in streams:
            _add_page(source, streams[page.serial], page)
        at = page.end
    parts = [part for stream in streams.values() for part in _make_parts(stream)]
    return parts or [_explain_nothing(has_streams=bool(streams), is_headless=is_headless)], at


def _find_page(source: ByteSource, at: int) -> int:
    """Return the place of the next page or of a file of another kind, or the end."""
    if source.read(at, len(MAGIC)) == MAGIC:
        return at
    place = next(source.search(PAGES, at), source.size)
    return min(place, find_frames(source, at, min(place, at + SEARCHED_BYTES)))


def _read_page(source: ByteSource, at: int) -> _Page | None:
    """Return the page that begins here, if it is whole."""
    header = source.read(at, _HEADER_BYTES + 255)
    if header[:4] != MAGIC or len(header) < _HEADER_BYTES:
        return None
    body = _HEADER_BYTES + header[26]
    end = at + body + sum(header[_HEADER_BYTES:body])
    # Of a page that was cut off, the next file is no part.
    is_whole = end <= source.size and next(source.search(_CUT, at + body, end), None) is None
    position = int.from_bytes(header[6:14], "little", signed=True)
    return _Page(at, at + body, end, header[5], position, header[14:18]) if is_whole else None


def _is_intact(source: ByteSource, page: _Page) -> bool:
    """Return whether the checksum of a page is right: that of zlib, with the bits in the other order, from 0."""
    content = source.read(page.at, page.end - page.at)
    place = slice(_CHECKSUM_AT, _CHECKSUM_AT + 4)
    reversed_bits = (content[: place.start] + bytes(4) + content[place.stop :]).translate(_REVERSED)
    checksum = zlib.crc32(reversed_bits, 0xFFFF_FFFF) ^ 0xFFFF_FFFF
    return checksum.to_bytes(4, "big").translate(_REVERSED) == content[place]


def _add_page(source: ByteSource, stream: _Stream, page: _Page) -> None:
    if not _is_intact(source, page):
        # libsndfile passes over such a page, and would decode FLAC no further than to it.
        stream.damaged_count += 1
        return
    if not stream.first.startswith(_FLAC):
        _add_sound(source, stream, page)
        return
    # A FLAC file is its headers and frames in a row, and the frames begin on a page of their own: the Ogg FLAC mapping.
    body = source.read(page.body_at, min(page.end - page.body_at, _HEADERS_BYTES_MAX))
    if stream.flac is None and (page.flags & _IS_CONTINUED or not body.startswith(_FLAC_FRAME)):
        stream.headers += body[: _HEADERS_BYTES_MAX - len(stream.headers)]
        return
    if stream.flac is None:
        info = _FLAC_INFO.search(stream.headers)
        stream.flac = make_flac_part(source, "OGG", bytes(stream.headers[info.end() :]) if info else b"")
    if stream.flac.content is not None:
        stream.flac.content.append(page.body_at, page.end - page.body_at)


def _add_sound(source: ByteSource, stream: _Stream, page: _Page) -> None:
    """Add a page of Vorbis or Opus, unless its position falls back: libsndfile reads up to the last position.

    After such a page, a new sound begins. Opus cannot begin with it: its first samples would be before the time 0.
    """
    if not stream.sounds and page.position <= 0 and len(stream.header_pages) < _HEADER_PAGES_MAX:
        stream.header_pages.append(page)
        return
    if 0 <= page.position < stream.position:
        stream.is_disordered = True
        if len(stream.sounds) < _SOUNDS_MAX:
            stream.position, stream.has_ended = page.position, True
        return
    if stream.has_ended:
        stream.sounds.append(ByteView(source))
        stream.has_ended = False
        for header in stream.header_pages:
            stream.sounds[-1].append(header.at, header.end - header.at)
    stream.position = max(page.position, stream.position)
    stream.sounds[-1].append(page.at, page.end - page.at)


def _make_parts(stream: _Stream) -> list[Part]:
    """Return the sounds of a stream, and none for pictures and the like."""
    count = stream.damaged_count
    pages = "a damaged page, whose sound is" if count == 1 else f"{count} damaged pages, whose sound is"
    damage = f"The OGG file has {pages} missing." if count else ""
    if stream.first.startswith(_FLAC):
        return [replace(stream.flac or make_broken_part("OGG"), damage=damage)]
    if stream.first.startswith(_READABLE):
        codec: Literal["", "Opus"] = "Opus" if stream.first.startswith(_OPUS) else ""
        parts = [Part("OGG", sound, _UNDECODED, codec=codec, damage=damage) for sound in stream.sounds]
        return (parts or [Part("OGG", None, damage or _NO_TIMES)]) + [
            Part("OGG", None, _DISORDER)
        ] * stream.is_disordered
    encoding = next((name for magic, name in _UNREADABLE.items() if stream.first.startswith(magic)), None)
    return [] if encoding is None else [make_unreadable_part("OGG", encoding)]


def _explain_nothing(*, has_streams: bool, is_headless: bool) -> Part:
    if has_streams:
        return Part("OGG", None, "The OGG file has no sound.")
    if not is_headless:
        return make_broken_part("OGG")
    return Part("OGG", None, "The OGG file begins in the middle of a stream, without the headers that decoding needs.")
