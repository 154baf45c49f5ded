"""Recordings as recorders, streams and editors leave them."""

import io
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import soundfile

from .sound import RATE_HZ, Sound

# On libsndfile's own scale, 0 is the best quality and the highest rate.
BEST: Final[dict[str, Any]] = {"compression_level": 0.0}
_STREAMINFO_AT: Final = 8
_STREAMINFO_BYTES: Final = 34


def write_recording(sound: Sound, form: str, subtype: str, rate_hz: int = RATE_HZ, **kind: Any) -> bytes:
    """Return a file as libsndfile writes it."""
    file = io.BytesIO()
    kind = {"format": form, "subtype": subtype, **(BEST if form == "MP3" else {}), **kind}
    with soundfile.SoundFile(file, "w", rate_hz, sound[:1].size, **kind) as writer:
        # libsndfile's Vorbis encoder keeps its blocks on the stack, and crashes with a block of a minute.
        for first in range(0, len(sound), RATE_HZ):
            writer.write(sound[first : first + RATE_HZ])
    return file.getvalue()


def make_chunk(name: bytes, content: bytes, size: int | None = None, *, order: str = "<") -> bytes:
    """Return a chunk of RIFF that claims this size, without the byte that pads an odd one."""
    return name + struct.pack(order + "I", len(content) if size is None else size) + content


def make_form(*, channels: int = 1, rate_hz: int = RATE_HZ, bits: int = 16, kind: int = 1, order: str = "<") -> bytes:
    """Return a chunk with the format of a WAV file."""
    align = channels * bits // 8
    return make_chunk(
        b"fmt ", struct.pack(order + "HHIIHH", kind, channels, rate_hz, rate_hz * align, align, bits), order=order
    )


def make_riff(*chunks: bytes, magic: bytes = b"RIFF", size: int | None = None) -> bytes:
    """Return a WAV file of these chunks."""
    body = b"WAVE" + b"".join(chunks)
    return make_chunk(magic, body, size, order=">" if magic == b"RIFX" else "<")


def make_sizes(data_size: int, riff_size: int = 0) -> bytes:
    """Return the chunk that holds the sizes of RF64 and BW64."""
    return make_chunk(b"ds64", struct.pack("<QQQI", riff_size, data_size, 0, 0))


def make_samples(sound: Sound, bits: int = 16) -> bytes:
    """Return integers of 16, 24 or 32 bits, little endian, the channels in turn."""
    integers = np.round(np.asarray(sound) * (2**31 - 1)).astype("<i4").reshape(-1, 1).view(np.uint8)
    return integers.reshape(-1, 4)[:, 4 - bits // 8 :].tobytes()


def set_flac_length(content: bytes, sample_count: int) -> bytes:
    """Return a FLAC file that claims another length and no checksum: 0 is what a stream says."""
    info = bytearray(content[_STREAMINFO_AT : _STREAMINFO_AT + _STREAMINFO_BYTES])
    fields = int.from_bytes(info[10:18], "big") >> 36 << 36 | sample_count
    info[10:] = fields.to_bytes(8, "big") + bytes(16)
    return content[:_STREAMINFO_AT] + bytes(info) + content[_STREAMINFO_AT + _STREAMINFO_BYTES :]


def make_tag(content: bytes, *, flags: int = 0, has_footer: bool = False, size: int | None = None) -> bytes:
    """Return an ID3v2 tag, with its footer if it has one."""
    size = len(content) if size is None else size
    flags |= 0x10 if has_footer else 0
    rest = b"\4\0" + bytes([flags]) + bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3" + rest + content + (b"3DI" + rest if has_footer else b"")


def make_ape_tag(content: bytes) -> bytes:
    """Return an APEv2 tag with a header and a footer."""

    def make_end(flags: int) -> bytes:
        return b"APETAGEX" + struct.pack("<IIII8x", 2000, len(content) + 32, 1, flags)

    return make_end(0xA000_0000) + content + make_end(0x8000_0000)


def make_ogg(packets: list[bytes], *, serial: int = 1, first_at: int = 0, granule_step: int = 0) -> Iterator[bytes]:
    """Yield the pages of a logical stream of Ogg, one packet on each."""
    for number, packet in enumerate(packets):
        lacing = [255] * (len(packet) // 255) + [len(packet) % 255]
        flags = 2 if number == 0 else 4 if number == len(packets) - 1 else 0
        granule = first_at + max(0, number - 1) * granule_step
        head = struct.pack("<4sBBqII", b"OggS", 0, flags, granule, serial, number)
        page = bytearray(head + bytes(4) + bytes([len(lacing), *lacing]) + packet)
        page[22:26] = struct.pack("<I", _compute_checksum(page))
        yield bytes(page)


def move_positions(content: bytes, move: Callable[[int], int]) -> bytes:
    """Return an Ogg file whose pages of sound claim other positions."""
    pages, at = [], 0
    while at < len(content):
        body = at + 27 + content[at + 26]
        end = body + sum(content[at + 27 : body])
        page, at = bytearray(content[at:end]), end
        (position,) = struct.unpack_from("<q", page, 6)
        struct.pack_into("<q", page, 6, move(position) if position > 0 else position)
        page[22:26] = bytes(4)
        page[22:26] = struct.pack("<I", _compute_checksum(page))
        pages.append(bytes(page))
    return b"".join(pages)


def _compute_checksum(page: bytes) -> int:
    checksum = 0
    for byte in page:
        checksum ^= byte << 24
        for _ in range(8):
            checksum = (checksum << 1 ^ (0x04C11DB7 if checksum >> 31 else 0)) & 0xFFFF_FFFF
    return checksum


def make_ogg_flac(flac: bytes, *, serial: int = 1) -> bytes:
    """Return a FLAC file of ours in Ogg: the Ogg FLAC mapping, 1.0."""
    info_end = _STREAMINFO_AT + _STREAMINFO_BYTES
    frames_at = _find_frames(flac)
    first = b"\x7fFLAC\1\0\0\1" + flac[:info_end]
    first = first[:13] + b"\0" + first[14:]
    comment = b"\x84" + (8).to_bytes(3, "big") + bytes(8)
    frames = _split_flac(flac[frames_at:])
    return b"".join(make_ogg([first, comment, *frames], serial=serial, granule_step=4096))


def _find_frames(flac: bytes) -> int:
    at, is_last = 4, False
    while not is_last:
        is_last = bool(flac[at] & 0x80)
        at += 4 + int.from_bytes(flac[at + 1 : at + 4], "big")
    return at


def _split_flac(frames: bytes) -> list[bytes]:
    """Return frames by their header of fixed block size, whose number grows by one."""
    starts, at = [], 0
    while at >= 0:
        starts.append(at)
        number = len(starts)
        coded = bytes([number]) if number < 0x80 else bytes([0xC0 | number >> 6, 0x80 | number & 0x3F])
        at = next(
            (place for place in _find_all(frames, frames[:2], at + 4) if frames[place + 4 :].startswith(coded)), -1
        )
    return [frames[a:b] for a, b in zip(starts, [*starts[1:], len(frames)], strict=True)]


def _find_all(content: bytes, part: bytes, at: int) -> Iterator[int]:
    while (at := content.find(part, at)) >= 0:
        yield at
        at += 1
