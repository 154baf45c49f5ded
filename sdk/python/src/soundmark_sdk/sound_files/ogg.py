"""Ogg: Vorbis, Opus and FLAC; several streams at once, or one after the other."""

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from soundmark_sdk.sound_files.byte_source import ByteSource, ByteView
from soundmark_sdk.sound_files.flac import make_flac_part
from soundmark_sdk.sound_files.mpeg import find_frames
from soundmark_sdk.sound_files.part import SEARCHED_BYTES, STARTS, Part, make_broken_part, make_unreadable_part

MAGIC: Final = b"OggS"
_HEADER_BYTES: Final = 27
_IS_CONTINUED, _IS_FIRST = 0x01, 0x02
# What cannot be in a page.
_CUT: Final = re.compile(rb"OggS\0[\0-\7]|RIFF[\0-\xff]{4}WAVE")
# A page of any place in a stream, or a file of another kind.
PAGES: Final = re.compile(rb"OggS\0[\0-\7]|" + STARTS.pattern)
_DISORDER: Final = "The OGG file has pages whose time falls back; they cannot be read."
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
    """One logical stream: how its first packet begins, its sound so far, and the headers of FLAC."""

    first: bytes
    pages: ByteView
    position: int = 0
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
            streams[page.serial] = _Stream(source.read(page.body_at, 8), ByteView(source))
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


def _add_page(source: ByteSource, stream: _Stream, page: _Page) -> None:
    if not stream.first.startswith(_FLAC):
        _add_sound(stream, page)
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


def _add_sound(stream: _Stream, page: _Page) -> None:
    """Add a page of Vorbis or Opus, unless its position falls back: libsndfile reads up to the last position."""
    if 0 <= page.position < stream.position:
        stream.is_disordered = True
        return
    stream.position = max(page.position, stream.position)
    stream.pages.append(page.at, page.end - page.at)


def _make_parts(stream: _Stream) -> list[Part]:
    """Return the sounds of a stream, and none for pictures and the like."""
    if stream.first.startswith(_FLAC):
        return [stream.flac or make_broken_part("OGG")]
    if stream.first.startswith(_READABLE):
        codec: Literal["", "Opus"] = "Opus" if stream.first.startswith(_OPUS) else ""
        parts = [Part("OGG", stream.pages, codec=codec)] if stream.position else []
        return parts + [Part("OGG", None, _DISORDER)] * stream.is_disordered
    encoding = next((name for magic, name in _UNREADABLE.items() if stream.first.startswith(magic)), None)
    return [] if encoding is None else [make_unreadable_part("OGG", encoding)]


def _explain_nothing(*, has_streams: bool, is_headless: bool) -> Part:
    if has_streams:
        return Part("OGG", None, "The OGG file has no sound.")
    if not is_headless:
        return make_broken_part("OGG")
    return Part("OGG", None, "The OGG file begins in the middle of a stream, without the headers that decoding needs.")
