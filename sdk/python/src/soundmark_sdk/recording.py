"""Read recordings of the common kinds, and hear the frames in them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import numpy as np
import soundfile
from numpy.typing import NDArray

from soundmark_sdk.hearing import Frame, hear_samples
from soundmark_sdk.resampling import RATE_MAX_HZ, RATE_MIN_HZ, Samples

Recording: TypeAlias = str | os.PathLike[str] | BinaryIO

# libsndfile reads many more formats. The fewer parsers an untrusted file can reach, the better.
_PCM: Final = frozenset({"PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"})
_SUBTYPES: Final = {
    "WAV": _PCM,
    "WAVEX": _PCM,
    "RF64": _PCM,
    "FLAC": frozenset({"PCM_S8", "PCM_16", "PCM_24"}),
    "OGG": frozenset({"VORBIS", "OPUS"}),
    "MP3": frozenset({"MPEG_LAYER_II", "MPEG_LAYER_III"}),
}
_WAV_MAGIC: Final = frozenset({b"RIFF", b"RIFX", b"RF64"})
# The bits that begin every MPEG frame, and the bits of its layer, where 0 is reserved: ISO/IEC 11172-3, 2.4.1.3.
_MPEG_SYNC: Final = 0xFFE0
_MPEG_LAYER: Final = 0x0006
_ID3_HEADER_BYTES: Final = 10

# Memory holds one segment of the sound at a time. A frame lasts 3.2 s at most (measured, protocol 3), so when two
# segments share four seconds, one of them holds the whole frame.
_OVERLAP_S: Final = 4
_SEGMENT_MIN_S: Final = 2 * _OVERLAP_S
_SEGMENT_MAX_S: Final = 60
_SEGMENT_SAMPLES: Final = 16 * 1024 * 1024
# A broadcast day. A few kilobytes of a compressed file can hold more silence than anyone would wait for.
DURATION_MAX_S: Final = 24 * 60 * 60


def hear(recording: Recording) -> list[Frame]:
    """Return the frames in a recording, each once.

    WAV (8, 16, 24 or 32-bit integers or floats), FLAC, OGG (Vorbis or Opus) and MP3; any number of channels; 44.1 to
    768 kHz; up to 24 hours. It listens to each channel and to their mean, in which a frame may cancel out. Memory
    depends on the number of channels and not on the length.

    Raises: ValueError for any other file; OSError for a file that cannot be read, or that has no positions.
    """
    with open_recording(recording) as sound:
        _check_audible_rate(sound.samplerate)
        heard: dict[Frame, None] = {}
        for segment, _ in read_segments(sound):
            for signal in split_signals(segment):
                heard.update(dict.fromkeys(hear_samples(signal, sound.samplerate)))
    return list(heard)


@contextmanager
def open_recording(recording: Recording) -> Iterator[soundfile.SoundFile]:
    """Yield the opened recording, if it has one of the formats that are read.

    Raises: ValueError for any other file; OSError for a file that cannot be read, or that has no positions.
    """
    if isinstance(recording, str | os.PathLike):
        with Path(recording).open("rb") as file, _open_sound(file) as sound:
            yield sound
    else:
        with _open_sound(recording) as sound:
            yield sound


def _check_audible_rate(sample_rate: int) -> None:
    if not RATE_MIN_HZ <= sample_rate <= RATE_MAX_HZ:
        raise ValueError(f"The sample rate must be {RATE_MIN_HZ} to {RATE_MAX_HZ} Hz; below, frames are inaudible.")


def _open_sound(file: BinaryIO) -> soundfile.SoundFile:
    kind = _detect_kind(file)
    if kind is None:
        raise ValueError("That is not a WAV, FLAC, OGG or MP3 file; convert it to one of these first.")
    if kind == "MP3" and kind not in soundfile.available_formats():
        raise ValueError("The installed libsndfile cannot read MP3; version 1.1 or later can.")
    try:
        sound = soundfile.SoundFile(file)
    except soundfile.LibsndfileError:
        raise _make_broken_error(kind) from None
    if sound.samplerate < 1:
        sound.close()
        raise _make_broken_error(kind)
    if sound.subtype not in _SUBTYPES.get(sound.format, ()):
        sound.close()
        raise ValueError(f"The {kind} file has an encoding that cannot be read ({sound.format}, {sound.subtype}).")
    return sound


def _detect_kind(file: BinaryIO) -> str | None:
    """Return the kind of file from its first bytes, or None for every other kind."""
    start = file.tell()
    magic = file.read(_ID3_HEADER_BYTES)
    if magic[:3] == b"ID3" and len(magic) == _ID3_HEADER_BYTES:
        # The length of the tag is written in four groups of seven bits: ID3v2.4, 3.1.
        file.seek(sum(byte << shift for byte, shift in zip(magic[6:], (21, 14, 7, 0), strict=True)), os.SEEK_CUR)
        magic = file.read(4)
    file.seek(start)
    if magic[:4] in _WAV_MAGIC:
        return "WAV"
    if magic[:4] in {b"fLaC", b"OggS"}:
        return {b"fLaC": "FLAC", b"OggS": "OGG"}[magic[:4]]
    sync = int.from_bytes(magic[:2], "big")
    return "MP3" if sync & _MPEG_SYNC == _MPEG_SYNC and sync & _MPEG_LAYER else None


def read_segments(sound: soundfile.SoundFile) -> Iterator[tuple[Samples, int]]:
    """Yield overlapping pieces of shape (samples, channels), each with the number of samples that it repeats.

    Raises: ValueError for a file that is broken or longer than a day.
    """
    duration_s = _SEGMENT_SAMPLES // (sound.samplerate * sound.channels)
    length = sound.samplerate * min(max(duration_s, _SEGMENT_MIN_S), _SEGMENT_MAX_S)
    overlap = sound.samplerate * _OVERLAP_S
    try:
        segment = sound.read(length, dtype="float32", always_2d=True)
        yield segment, 0
        count = len(segment)
        while len(fresh := sound.read(length - overlap, dtype="float32", always_2d=True)):
            count += len(fresh)
            if count > DURATION_MAX_S * sound.samplerate:
                raise ValueError("The recording is longer than 24 hours; cut it into shorter ones.")
            repeated = segment[-overlap:]
            segment = np.concatenate([repeated, fresh])
            yield segment, len(repeated)
    except soundfile.LibsndfileError:
        raise _make_broken_error("WAV" if sound.format in {"WAVEX", "RF64"} else sound.format) from None


def _make_broken_error(kind: str) -> ValueError:
    return ValueError(f"The {kind} file is broken.")


def split_signals(segment: Samples) -> Iterator[Samples]:
    """Yield the mean of the channels, then each channel, all scaled to -1..1; silent ones are left out."""
    finite = np.nan_to_num(segment, nan=0.0, posinf=0.0, neginf=0.0)
    channels = finite.shape[1]
    yield from filter(np.any, map(_scale, [finite.mean(axis=1)] if channels > 1 else []))
    yield from filter(np.any, (_scale(finite[:, channel]) for channel in range(channels)))


def _scale(signal: NDArray[np.float32]) -> Samples:
    # A file of floats may exceed full scale by any factor, and clipping would distort the tones.
    scaled: Samples = signal / np.abs(signal).max(initial=1.0)
    return scaled
