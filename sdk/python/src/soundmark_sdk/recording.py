"""Hearing frames in WAV recordings of any common kind."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import soundfile
from numpy.typing import NDArray

from soundmark_sdk.hearing import Frame, hear_samples
from soundmark_sdk.resampling import RATE_MAX_HZ, RATE_MIN_HZ, Samples

# The only forms of libsndfile's many that are read: the fewer parsers meet a stranger's file, the better.
_FORMATS: Final = frozenset({"WAV", "WAVEX", "RF64"})
_SUBTYPES: Final = frozenset({"PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"})
_MAGIC: Final = frozenset({b"RIFF", b"RIFX", b"RF64"})

# Sound is held in memory a segment at a time. A frame lasts 3.2 s at most (measured, protocol 3), so it lies whole in
# one of two segments that share four seconds.
_OVERLAP_S: Final = 4
_SEGMENT_MIN_S: Final = 2 * _OVERLAP_S
_SEGMENT_MAX_S: Final = 60
_SEGMENT_SAMPLES: Final = 16 * 1024 * 1024


def hear(recording: str | os.PathLike[str] | BinaryIO) -> list[Frame]:
    """Return the frames in a WAV recording, each once.

    Any number of channels; 8, 16, 24 or 32-bit integers or floats; 44.1 to 768 kHz. Each channel is listened to by
    itself as well as their mean, in which a frame may cancel out. Memory is bounded by the channels, not the length.

    Raises: ValueError for what is no such recording; OSError when it cannot be read, or not at any place in it.
    """
    if isinstance(recording, str | os.PathLike):
        with Path(recording).open("rb") as file:
            return hear(file)
    heard: dict[Frame, None] = {}
    with _open(recording) as sound:
        for segment in _segments(sound):
            for signal in _signals(segment):
                heard.update(dict.fromkeys(hear_samples(signal, sound.samplerate)))
    return list(heard)


def _open(file: BinaryIO) -> soundfile.SoundFile:
    """Return the opened recording, once its first bytes, format and rate are known to be ones that are read."""
    start = file.tell()
    magic = file.read(4)
    file.seek(start)
    if magic not in _MAGIC:
        raise ValueError("That is not a WAV file.")
    try:
        sound = soundfile.SoundFile(file)
    except soundfile.LibsndfileError:
        raise ValueError("The WAV file is broken.") from None
    if sound.format not in _FORMATS or sound.subtype not in _SUBTYPES:
        sound.close()
        raise ValueError("The WAV file is not of 8, 16, 24 or 32-bit integers or floats.")
    if not RATE_MIN_HZ <= sound.samplerate <= RATE_MAX_HZ:
        sound.close()
        raise ValueError(f"The sample rate must be {RATE_MIN_HZ} to {RATE_MAX_HZ} Hz; below, frames are inaudible.")
    return sound


def _segments(sound: soundfile.SoundFile) -> Iterator[Samples]:
    """Yield overlapping pieces of shape (samples, channels)."""
    duration_s = _SEGMENT_SAMPLES // (sound.samplerate * sound.channels)
    length = sound.samplerate * min(max(duration_s, _SEGMENT_MIN_S), _SEGMENT_MAX_S)
    overlap = sound.samplerate * _OVERLAP_S
    try:
        segment = sound.read(length, dtype="float32", always_2d=True)
        yield segment
        while len(fresh := sound.read(length - overlap, dtype="float32", always_2d=True)):
            segment = np.concatenate([segment[-overlap:], fresh])
            yield segment
    except soundfile.LibsndfileError:
        raise ValueError("The WAV file is broken.") from None


def _signals(segment: Samples) -> Iterator[Samples]:
    """Yield the channels' mean, then each channel, all brought within -1..1; silent ones are left out."""
    finite = np.nan_to_num(segment, nan=0.0, posinf=0.0, neginf=0.0)
    channels = finite.shape[1]
    yield from filter(np.any, map(_within_one, [finite.mean(axis=1)] if channels > 1 else []))
    yield from filter(np.any, (_within_one(finite[:, channel]) for channel in range(channels)))


def _within_one(signal: NDArray[np.float32]) -> Samples:
    # Float files may exceed full scale by any factor, and clipping would smear the tones.
    scaled: Samples = signal / np.abs(signal).max(initial=1.0)
    return scaled
