"""Read recordings of the common kinds, and hear the frames in them."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing import Frame, hear_samples
from soundmark_sdk.resampling import RATE_MAX_HZ, RATE_MIN_HZ, Samples
from soundmark_sdk.sound_files.byte_source import ByteSource
from soundmark_sdk.sound_files.part import Part
from soundmark_sdk.sound_files.parts import find_parts, name_kind
from soundmark_sdk.sound_files.sounds import Sound, SoundReader
from soundmark_sdk.sound_files.tags import ID3_BYTES, measure_id3

Recording: TypeAlias = str | os.PathLike[str] | BinaryIO

# A pipe is saved to a temporary file, because some formats are read from their end. First its beginning must look like
# a recording, so that an endless stream of something else is refused at once.
_PIPE_START_BYTES: Final = 16 << 20
_PIPE_BYTES_MAX: Final = 8 << 30
_PIPE_BLOCK_BYTES: Final = 1 << 20

# Memory holds one segment of the sound at a time. A frame lasts 3.2 s at most (measured, protocol 3), so when two
# segments share four seconds, one of them holds the whole frame.
_OVERLAP_S: Final = 4
_SEGMENT_MIN_S: Final = 2 * _OVERLAP_S
_SEGMENT_MAX_S: Final = 60
_SEGMENT_SAMPLES: Final = 16 * 1024 * 1024
# A sample is no sound if it exceeds this many times what nearly all others keep to.
_SPIKE: Final = 64.0
_USUAL_SHARE: Final = 0.999
# A broadcast day. A few kilobytes of a compressed file can hold more silence than anyone would wait for.
DURATION_MAX_S: Final = 24 * 60 * 60


def hear(recording: Recording) -> list[Frame]:
    """Return the frames in a recording, each once.

    WAV (8, 16, 24 or 32-bit integers or floats; also RF64 and BW64), FLAC, OGG (Vorbis, Opus or FLAC) and MP3; any
    number of channels; 44 to 768 kHz; up to 24 hours. It reads streams of unknown length, several files that were
    joined, files whose recorder crashed, and pipes. It listens to each channel and to their mean, in which a frame may
    cancel out. Memory depends on the number of channels and not on the length.

    Raises: ValueError for any other file, unless a part of it can be read and has a frame; OSError for a file that
    cannot be read; TypeError for samples, which a `Listener` takes, and for anything else that is no file.
    """
    heard: dict[Frame, None] = {}
    with open_recording(recording) as reader:
        for sound in reader.read_sounds():
            if not RATE_MIN_HZ <= sound.sample_rate <= RATE_MAX_HZ:
                reader.obstacles.append(
                    f"The sample rate is {sound.sample_rate} Hz; frames are heard at {RATE_MIN_HZ} to {RATE_MAX_HZ} Hz."
                )
                continue
            for segment, _ in read_segments(sound):
                for signal in split_signals(segment):
                    heard.update(dict.fromkeys(hear_samples(signal, sound.sample_rate)))
        if reader.obstacles and not heard:
            raise ValueError(reader.obstacles[0])
    return list(heard)


@contextmanager
def open_recording(recording: Recording) -> Iterator[SoundReader]:
    """Yield a reader of the sounds in a recording.

    Raises: ValueError for a file of another kind; OSError for a file that cannot be read; TypeError for no file.
    """
    with ExitStack() as stack:
        file: BinaryIO
        if isinstance(recording, str | os.PathLike):
            file = stack.enter_context(Path(recording).open("rb"))
        elif not hasattr(recording, "read"):
            raise TypeError("A recording is a path or an open file; a Listener takes samples.")
        else:
            file = recording
        if not _has_positions(file):
            file = stack.enter_context(_save_pipe(file))
        reader = SoundReader(_find_parts(ByteSource(file)))
        stack.callback(reader.close)
        yield reader


def _find_parts(source: ByteSource) -> Iterator[Part]:
    parts = find_parts(source)
    if (first := next(parts, None)) is not None:
        return chain([first], parts)
    if not source.size:
        raise ValueError("The file is empty.")
    other = name_kind(source)
    kind = "" if other is None else f"{other}, "
    raise ValueError(f"That is {kind}not a WAV, FLAC, OGG or MP3 file; convert it to one of these first.")


def _has_positions(file: BinaryIO) -> bool:
    """Return whether the file can be read from any place; a terminal, a pipe and a device cannot."""
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, AttributeError):  # A file in memory has no number.
        return file.seekable()


@contextmanager
def _save_pipe(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a temporary file with the content of a pipe.

    Raises: ValueError for something else than a recording, or for more than 8 GB.
    """
    with tempfile.TemporaryFile() as saved:
        saved.writelines(_read_blocks(file, _PIPE_START_BYTES))
        saved.seek(0)
        # A tag may hold pictures of any size.
        tag_bytes = measure_id3(saved.read(ID3_BYTES))
        saved.seek(0, os.SEEK_END)
        saved.writelines(_read_blocks(file, tag_bytes))
        saved.seek(0)
        _find_parts(ByteSource(saved))
        saved.seek(0, os.SEEK_END)
        saved.writelines(_read_blocks(file, _PIPE_BYTES_MAX))
        if file.read(1):
            raise ValueError("More than 8 GB came through the pipe; save the recording to a file first.")
        saved.seek(0)
        yield saved


def _read_blocks(file: BinaryIO, count: int) -> Iterator[bytes]:
    while count > 0 and (block := file.read(min(count, _PIPE_BLOCK_BYTES))):
        count -= len(block)
        yield block


def read_segments(sound: Sound) -> Iterator[tuple[Samples, int]]:
    """Yield overlapping pieces of shape (samples, channels), each with the number of samples that it repeats.

    Raises: ValueError for a sound that is longer than a day.
    """
    duration_s = _SEGMENT_SAMPLES // (sound.sample_rate * sound.channels)
    length = sound.sample_rate * min(max(duration_s, _SEGMENT_MIN_S), _SEGMENT_MAX_S)
    overlap = sound.sample_rate * _OVERLAP_S
    segment = sound.read(length)
    yield segment, 0
    count = len(segment)
    while len(fresh := sound.read(length - overlap)):
        count += len(fresh)
        if count > DURATION_MAX_S * sound.sample_rate:
            raise ValueError("The recording is longer than 24 hours; cut it into shorter ones.")
        repeated = segment[-overlap:]
        segment = np.concatenate([repeated, fresh])
        yield segment, len(repeated)


def split_signals(segment: Samples) -> Iterator[Samples]:
    """Yield the mean of the channels, then each channel, all scaled to -1..1; silent ones are left out."""
    finite = np.nan_to_num(segment, nan=0.0, posinf=0.0, neginf=0.0)
    channels = finite.shape[1]
    yield from filter(np.any, map(scale_signal, [finite.mean(axis=1)] if channels > 1 else []))
    yield from filter(np.any, (scale_signal(finite[:, channel]) for channel in range(channels)))


def scale_signal(signal: NDArray[np.float32]) -> Samples:
    """Return a signal in -1..1. Floats may exceed that by any factor, and clipping would distort the tones.

    Single samples that tower above all others are no sound, and would make it inaudibly quiet: they are clipped.
    """
    magnitude = np.abs(signal)
    peak = magnitude.max(initial=1.0)
    if peak > _SPIKE:
        peak = min(peak, _SPIKE * max(1.0, float(np.quantile(magnitude, _USUAL_SHARE))))
    scaled: Samples = np.clip(signal, -peak, peak) / peak
    return scaled
