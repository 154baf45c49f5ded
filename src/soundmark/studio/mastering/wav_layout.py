"""Where the samples of a WAV, BWF, RF64 or BW64 file are, and how they are written.

Only `fmt `, `data` and `ds64` are read. Everything else (bext, iXML, cart, axml, chna, LIST, id3) is copied with the
file, byte for byte.
"""

import os
import struct
from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

MAGICS: Final = frozenset({b"RIFF", b"RF64", b"BW64"})
_UNKNOWN_SIZE: Final = 0xFFFFFFFF  # Of a large file, whose sizes are in `ds64`, and of one that was never finished.
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_HEAD_BYTES: Final = 8
_FORMAT_BYTES_MIN: Final = 16
_EXTENSION_ENDS_AT: Final = 40
_CHUNKS_MAX: Final = 10_000
_FORMAT_BYTES_MAX: Final = 64
_INTEGER_SIZES: Final = (1, 2, 3, 4)
_BITS_MIN: Final = 8
_FLOAT_MAX: Final = 1e12  # 240 dB above full scale: the power of a spectrum of 32-bit floats is still finite.
_SPEAKER_BITS: Final = 18


class NotReadable(ValueError):
    """A programme that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class SampleFormat:
    """How one sample is written: in `size` bytes, of which an integer uses the highest `bits` bits."""

    size: int
    bits: int
    is_float: bool

    def decode(self, data: bytes, channel_count: int) -> NDArray[np.float64]:
        """Return samples of shape (samples, channels); full scale is 1.0, and what is not finite is 0.

        Floats are clipped where their powers would no longer be finite.
        """
        if self.is_float:
            samples = np.frombuffer(data, f"<f{self.size}").astype(np.float64).reshape(-1, channel_count)
            samples = np.nan_to_num(samples, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
            return np.clip(samples, -_FLOAT_MAX, _FLOAT_MAX, out=samples)
        return self.decode_integers(data, channel_count) / float(1 << (8 * self.size - 1))

    def decode_integers(self, data: bytes, channel_count: int) -> NDArray[np.int64]:
        """Return integers of `size` bytes, of shape (samples, channels)."""
        if self.size in {2, 4}:
            return np.frombuffer(data, f"<i{self.size}").astype(np.int64).reshape(-1, channel_count)
        if self.size == 1:  # Without a sign, as in every WAV file of 8 bits.
            return (np.frombuffer(data, np.uint8).astype(np.int64) - 128).reshape(-1, channel_count)
        columns = np.frombuffer(data, np.uint8).reshape(-1, self.size)
        wide = np.zeros((len(columns), 8), np.uint8)
        wide[:, 8 - self.size :] = columns
        shifted: NDArray[np.int64] = wide.view("<i8").reshape(-1) >> (64 - 8 * self.size)
        return shifted.reshape(-1, channel_count)

    def encode_integers(self, samples: NDArray[np.int64]) -> bytes:
        """Return the bytes that `decode_integers` reads as these samples."""
        flat = np.ascontiguousarray(samples).reshape(-1)
        if self.size == 1:
            return (flat + 128).astype(np.uint8).tobytes()
        return flat.astype("<i8").view(np.uint8).reshape(-1, 8)[:, : self.size].tobytes()


@dataclass(frozen=True, slots=True)
class WavLayout:
    """The samples of a file. `speakers` are the bits of the channel mask, or None if the file has none."""

    sample_rate: int
    channel_count: int
    format: SampleFormat
    speakers: tuple[int, ...] | None
    data_at: int
    sample_count: int

    @property
    def frame_bytes(self) -> int:
        """The bytes of one sample of every channel."""
        return self.format.size * self.channel_count


def read_layout(file: BinaryIO) -> WavLayout:
    """Read the layout of a file whose position is at its beginning.

    A file that was never finished states no size of its samples: they then go on until its end.

    Raises: NotReadable; OSError.
    """
    size = os.fstat(file.fileno()).st_size
    magic, _, form = struct.unpack("<4sI4s", _read_exactly(file, 12))
    if magic not in MAGICS or form != b"WAVE":
        raise NotReadable("it is no WAV, BW64 or RF64 file")
    described: tuple[int, int, SampleFormat, tuple[int, ...] | None] | None = None
    long_size: int | None = None
    at = 12
    for _ in range(_CHUNKS_MAX):
        file.seek(at)
        head = file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES:
            break
        name, chunk_size = struct.unpack("<4sI", head)
        if name == b"ds64":
            long_size = struct.unpack("<8xQ", _read_exactly(file, 16))[0]
        elif name == b"fmt ":
            described = _read_format(_read_exactly(file, min(chunk_size, _FORMAT_BYTES_MAX)))
        elif name == b"data":
            return _make_layout(described, at + 8, _size_of_data(chunk_size, long_size, size - at - 8))
        at += 8 + chunk_size + chunk_size % 2
    raise NotReadable("it contains no samples")


def _size_of_data(stated: int, long_size: int | None, left: int) -> int:
    if stated == _UNKNOWN_SIZE:
        stated = left if long_size is None else long_size
    return min(left if stated == 0 else stated, left)


def _make_layout(
    described: tuple[int, int, SampleFormat, tuple[int, ...] | None] | None, data_at: int, size: int
) -> WavLayout:
    if described is None:
        raise NotReadable("its samples come before their format")
    sample_rate, channel_count, sample_format, speakers = described
    return WavLayout(
        sample_rate, channel_count, sample_format, speakers, data_at, size // (sample_format.size * channel_count)
    )


def _read_format(chunk: bytes) -> tuple[int, int, SampleFormat, tuple[int, ...] | None]:
    if len(chunk) < _FORMAT_BYTES_MIN:
        raise NotReadable("its format is cut off")
    tag, channel_count, sample_rate, _, frame_bytes, container_bits = struct.unpack("<HHIIHH", chunk[:16])
    bits, speakers = container_bits, None
    if tag == _EXTENSIBLE and len(chunk) >= _EXTENSION_ENDS_AT:
        valid_bits, mask, tag = struct.unpack("<HIH", chunk[18:26])
        bits = valid_bits or container_bits
        speakers = tuple(bit for bit in range(_SPEAKER_BITS) if mask >> bit & 1) or None
    if not channel_count or not sample_rate or frame_bytes % channel_count:
        raise NotReadable("its format contradicts itself")
    size = frame_bytes // channel_count
    is_known = (tag == _PCM and size in _INTEGER_SIZES and _BITS_MIN <= bits <= 8 * size) or (
        tag == _FLOAT and size in {4, 8}
    )
    if not is_known:
        raise NotReadable(f"its samples have a format that is not read ({tag}, {container_bits} bits)")
    return sample_rate, channel_count, SampleFormat(size, bits, tag == _FLOAT), speakers


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise NotReadable("it is cut off")
    return data
