"""Programmes for mixing: noise that falls with pitch, written as every kind of file that is read."""

import struct
from pathlib import Path
from typing import Final

import numpy as np
import soundfile
from numpy.typing import NDArray

FRAME: Final = "XRC1:brd_aB3_xYz0-9qwErTy"
OTHER_FRAME: Final = "XRC1:brd_0123456789abcdef"
RATE_HZ: Final = 48_000
# The chunks of broadcasters, one of them with an odd size, which a byte follows that nobody counts.
CHUNKS_BEFORE: Final = ((b"bext", b"b" * 602), (b"iXML", b"<BWFXML/>"), (b"chna", b"c" * 44))
CHUNKS_AFTER: Final = ((b"cart", b"k" * 2048), (b"axml", b"<ebu/>!"), (b"LIST", b"INFOISFT"), (b"id3 ", b"ID3" * 5))


def make_programme(
    duration_s: float = 6.0, channel_count: int = 2, rate: int = RATE_HZ, level_dbfs: float = -20.0
) -> NDArray[np.float64]:
    """Return noise of shape (samples, channels) that falls by 6 dB an octave above 500 Hz, as music does on average."""
    count = round(duration_s * rate)
    spectrum = np.fft.rfft(np.random.default_rng(15).standard_normal((count, channel_count)), axis=0)
    slope = 1 / np.maximum(np.fft.rfftfreq(count, 1 / rate), 500)[:, None]
    sound = np.fft.irfft(spectrum * slope, count, axis=0)
    sound *= 10 ** (level_dbfs / 20) / np.sqrt(np.mean(np.square(sound)))
    return np.asarray(sound, np.float64)


def write_wav(path: Path, sound: NDArray[np.float64], subtype: str = "PCM_24", rate: int = RATE_HZ) -> Path:
    """Write a plain WAV file."""
    soundfile.write(path, sound, rate, subtype=subtype, format="WAV")
    return path


def write_broadcast_wav(
    path: Path, sound: NDArray[np.float64], *, magic: bytes = b"RIFF", data_size: int | None = None
) -> Path:
    """Write 16-bit samples among the chunks of broadcasters; `data_size` is what the file states, if not the truth.

    RF64 and BW64 have their sizes in `ds64`.
    """
    data = np.rint(sound * 32767).astype("<i2").tobytes()
    channels = sound.shape[1]
    layout = struct.pack("<HHIIHH", 1, channels, RATE_HZ, RATE_HZ * channels * 2, channels * 2, 16)
    is_long = magic != b"RIFF"
    stated = 0xFFFFFFFF if is_long else len(data) if data_size is None else data_size
    chunks = [(b"fmt ", layout), *CHUNKS_BEFORE]
    if is_long:
        chunks.insert(0, (b"ds64", struct.pack("<QQQI", 0, len(data), len(sound), 0)))
    body = b"".join(_chunk(*chunk) for chunk in chunks) + b"data" + struct.pack("<I", stated) + data
    body += b"" if data_size is not None else b"".join(_chunk(*chunk) for chunk in CHUNKS_AFTER)
    size = 0xFFFFFFFF if is_long or data_size is not None else len(body) + 4
    path.write_bytes(magic + struct.pack("<I", size) + b"WAVE" + body)
    return path


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
