"""A programme on disk, read in blocks and, if it is an intact WAV or FLAC file, written with sounds added to it."""

import itertools
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import soundfile
from numpy.typing import NDArray
from soundmark_sdk.client.saving import open_replacement
from soundmark_sdk.resampling import RATE_MAX_HZ, RATE_MIN_HZ

from soundmark.studio.mastering.encoded import EncodedSound
from soundmark.studio.mastering.flac_blocks import copy_metadata
from soundmark.studio.mastering.wav_layout import MAGICS, NotReadable, SampleFormat, WavLayout, read_layout

Samples = NDArray[np.float64]

CHANNELS_MAX: Final = 256
_STANDARD_INPUT: Final = Path("-")
_BLOCK_VALUES: Final = 1 << 20
_FLAC_BITS: Final = {"PCM_S8": 8, "PCM_16": 16, "PCM_24": 24}
_SEED: Final = 20261126  # Of the dither: the same programme and Code give the same file.


@dataclass(frozen=True, slots=True)
class Insertion:
    """A sound that is added from sample `start` on: `samples` is mono, at the programme's rate."""

    start: int
    samples: Samples

    @property
    def end(self) -> int:
        """The first sample after it."""
        return self.start + len(self.samples)


class WouldClip(Exception):
    """A sound does not fit under full scale. `over_db` is by how much it exceeds it."""

    def __init__(self, at_s: float, over_db: float) -> None:
        super().__init__(f"at {at_s:.1f} s, the programme and the Code together exceed full scale by {over_db:.1f} dB")
        self.at_s: Final = at_s
        self.over_db: Final = over_db


class Programme:
    """An open programme. Its samples have the shape (samples, channels); full scale is 1.0."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        """Raises: NotReadable; OSError."""
        self._file: Final = file
        self.path: Final = path
        self._flac: soundfile.SoundFile | None = None
        self._encoded: EncodedSound | None = None
        sound, obstacle = _open_encoded(file)
        mixable, reason = _open_mixable(file)
        if sound is None:
            raise reason or obstacle or AssertionError("what cannot be opened has a reason")
        if mixable is not None and mixable[0].sample_count == sound.sample_count:
            self._layout, self._flac = mixable
        else:
            # It is read as receivers hear it, and not as its header says.
            self._encoded = sound
            self._layout = WavLayout(
                sound.sample_rate, sound.channel_count, SampleFormat(4, 32, is_float=True), None, 0, sound.sample_count
            )
        _check(self._layout)
        self.sample_rate: Final = self._layout.sample_rate
        self.channel_count: Final = self._layout.channel_count
        self.sample_count: Final = self._layout.sample_count
        self.speakers: Final = self._layout.speakers
        # Of a programme into which nothing can be mixed.
        self.encoding: Final = None if self._encoded is None else self._encoded.kind

    @property
    def duration_s(self) -> float:
        """The duration in seconds."""
        return self.sample_count / self.sample_rate

    def read(self, start: int, count: int) -> Samples:
        """Return up to `count` samples from `start` on; fewer at the end.

        Raises: NotReadable; OSError.
        """
        layout = self._layout
        data = self._read_bytes(start, max(0, min(count, self.sample_count - start)))
        return layout.format.decode(data, layout.channel_count)

    def iterate(self) -> Iterator[Samples]:
        """Yield all samples in blocks.

        Raises: NotReadable; OSError.
        """
        length = max(1, _BLOCK_VALUES // self.channel_count)
        for start in range(0, self.sample_count, length):
            yield self.read(start, length)

    def write_with(self, insertions: Sequence[Insertion], channels: Sequence[int], target: Path) -> None:
        """Write the programme with these sounds, in order and without overlap, added to some channels.

        Every other sample, and everything beside the samples, is as before. Only the whole file replaces `target`.

        Raises: WouldClip; NotReadable; OSError.
        """
        assert self._encoded is None, "nothing is mixed into an encoded programme"
        with open_replacement(target) as file:
            if self._flac is None:
                self._file.seek(0)
                shutil.copyfileobj(self._file, file, 1 << 20)
                for start, data in self._change(insertions, channels):
                    file.seek(self._layout.data_at + start * self._layout.frame_bytes)
                    file.write(data)
            else:
                self._write_flac(insertions, channels, file)
            # As the programme, and not for its owner alone.
            os.fchmod(file.fileno(), self.path.stat().st_mode & 0o777)

    def _write_flac(self, insertions: Sequence[Insertion], channels: Sequence[int], file: BinaryIO) -> None:
        changed = itertools.chain(self._change(insertions, channels), [(self.sample_count, b"")])
        options = {"samplerate": self.sample_rate, "channels": self.channel_count, "format": "FLAC"}
        assert self._flac is not None, "it is a FLAC file"
        subtype = self._flac.subtype
        with open_scratch(file) as scratch:
            sink = _Sink(scratch)
            with soundfile.SoundFile(sink, "w", subtype=subtype, **options) as writer:
                at = 0
                for start, data in changed:
                    length = max(1, _BLOCK_VALUES // self.channel_count)
                    while at < start:
                        part = self._read_bytes(at, min(length, start - at))
                        writer.buffer_write(part, dtype="int32")
                        at += len(part) // self._layout.frame_bytes
                    writer.buffer_write(data, dtype="int32")
                    at += len(data) // self._layout.frame_bytes
            sink.raise_failure()
            self._file.seek(0)
            scratch.seek(0)
            copy_metadata(self._file, scratch, file)

    def _change(self, insertions: Sequence[Insertion], channels: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Yield the first sample and the bytes of each part of the programme that changes."""
        chance = np.random.default_rng(_SEED)
        layout = self._layout
        for insertion in insertions:
            data = self._read_bytes(insertion.start, len(insertion.samples))
            if layout.format.is_float:
                mixed = np.frombuffer(data, f"<f{layout.format.size}").reshape(-1, layout.channel_count).copy()
                for channel in channels:
                    mixed[:, channel] += insertion.samples.astype(mixed.dtype)
                self._require_room(insertion, np.abs(mixed[:, list(channels)]).astype(np.float64), 1.0)
                yield insertion.start, mixed.tobytes()
                continue
            steps = layout.format.decode_integers(data, layout.channel_count)
            full_scale = 1 << (8 * layout.format.size - 1)
            unit = 1 << (8 * layout.format.size - layout.format.bits)
            for channel in channels:
                dither = chance.random(len(steps)) - chance.random(len(steps))
                steps[:, channel] += np.rint(insertion.samples * (full_scale / unit) + dither).astype(np.int64) * unit
            carrying = steps[:, list(channels)].astype(np.float64)
            self._require_room(insertion, np.maximum(carrying, -carrying - unit), full_scale - unit)
            yield insertion.start, layout.format.encode_integers(steps)

    def _require_room(self, insertion: Insertion, magnitudes: Samples, full_scale: float) -> None:
        largest = float(magnitudes.max(initial=0.0))
        if largest > full_scale:
            at = insertion.start + int(np.argmax(magnitudes.max(axis=1)))
            raise WouldClip(at / self.sample_rate, 20 * float(np.log10(largest / full_scale)))

    def _read_bytes(self, start: int, count: int) -> bytes:
        if self._encoded is not None:
            return self._encoded.read(start, count)
        if self._flac is not None:
            try:
                self._flac.seek(start)
                return bytes(self._flac.buffer_read(count, dtype="int32"))
            except soundfile.LibsndfileError:
                raise NotReadable("the FLAC file is broken") from None
        self._file.seek(self._layout.data_at + start * self._layout.frame_bytes)
        return self._file.read(count * self._layout.frame_bytes)


class _Sink:
    """A file that libsndfile writes to. It ignores errors in its calls, so they are kept here and raised at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file: Final = file
        self._failure: OSError | None = None

    def write(self, data: bytes) -> int:
        self._try(lambda: self._file.write(data))
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._try(lambda: self._file.seek(offset, whence))

    def tell(self) -> int:
        return self._try(self._file.tell)

    def _try(self, call: Callable[[], int]) -> int:
        if self._failure is None:
            try:
                return call()
            except OSError as error:
                self._failure = error
        return 0

    def raise_failure(self) -> None:
        """Raises: OSError."""
        if self._failure is not None:
            raise self._failure
        self._file.flush()


@contextmanager
def open_programme(path: Path) -> Iterator[Programme]:
    """Yield an open programme.

    Raises: NotReadable; OSError.
    """
    if path == _STANDARD_INPUT and not path.exists():
        raise NotReadable("standard input can be heard with `soundmark hear -` only; save it to a file first")
    with path.open("rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotReadable("it is a pipe or a device; save it to a file first")
        yield Programme(file, path)


@contextmanager
def open_scratch(beside: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a temporary file in the folder of another one, which has room for it or has not."""
    name = f"{beside.name}.part"
    try:
        with Path(name).open("w+b") as file:
            yield file
    finally:
        Path(name).unlink(missing_ok=True)


def _open_encoded(file: BinaryIO) -> tuple[EncodedSound | None, NotReadable | None]:
    """Return the decoded sound of a file, or the reason why it cannot be decoded."""
    try:
        return EncodedSound(file), None
    except NotReadable as reason:
        return None, reason


def _open_mixable(file: BinaryIO) -> tuple[tuple[WavLayout, soundfile.SoundFile | None] | None, NotReadable | None]:
    """Return where a WAV or FLAC file says that its samples are, or else why they are not where they belong."""
    file.seek(0)
    magic = file.read(4)
    file.seek(0)
    try:
        if magic in MAGICS:
            return (read_layout(file), None), None
        if magic == b"fLaC":
            sound = _open_flac(file)
            form = SampleFormat(4, _FLAC_BITS[sound.subtype], is_float=False)
            return (WavLayout(sound.samplerate, sound.channels, form, None, 0, sound.frames), sound), None
    except NotReadable as reason:
        return None, reason
    return None, None


def _open_flac(file: BinaryIO) -> soundfile.SoundFile:
    try:
        sound = soundfile.SoundFile(file)
    except soundfile.LibsndfileError:
        raise NotReadable("the FLAC file is broken") from None
    if sound.format != "FLAC" or sound.subtype not in _FLAC_BITS:
        raise NotReadable(f"its samples have a format that is not read ({sound.subtype})")
    return sound


def _check(layout: WavLayout) -> None:
    if not RATE_MIN_HZ <= layout.sample_rate <= RATE_MAX_HZ:
        raise NotReadable(
            f"it has {layout.sample_rate} samples a second, and a Code needs {RATE_MIN_HZ} to {RATE_MAX_HZ}"
        )
    if layout.channel_count > CHANNELS_MAX:
        raise NotReadable(f"it has {layout.channel_count} channels, and at most {CHANNELS_MAX} are read")
    if not layout.sample_count:
        raise NotReadable("it contains no samples")
