"""What a codec leaves of a Code: the repetitions are encoded and decoded by ffmpeg, and heard again."""

import contextlib
import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import soundfile
from numpy.random import Generator, default_rng
from soundmark_sdk.resampling import RATE_HZ

from soundmark.studio.mastering.frame_search import locate
from soundmark.studio.mastering.frame_tones import FrameTones, Samples, make_frame_tones
from soundmark.studio.mastering.margins import MARGIN_MAX_DB
from soundmark.studio.mastering.programme import Programme
from soundmark.studio.mastering.repetitions import Repetition, choose_channels, measure_sound

EXCERPT_S: Final = 1.0  # Of the programme on either side, in which an encoder settles.
# Below, an encoder cuts more of a frame than its error correction restores.
CUTOFF_NEEDED_HZ: Final = 18_000
CUTOFF_ADVISED_HZ: Final = 20_000
_ENCODERS: Final = {
    "mp3": ("libmp3lame", "mp3"),
    "aac": ("aac", "m4a"),
    "opus": ("libopus", "opus"),
    "vorbis": ("libvorbis", "ogg"),
    "mp2": ("mp2", "mp2"),
    "ac3": ("ac3", "ac3"),
}
_ADVICE: Final = {
    "mp3": "FFmpeg: -cutoff 20000; LAME: --lowpass 20",
    "aac": "FFmpeg: -cutoff 20000; fdkaac: --bandwidth 20000",
}
_KBITS: Final = (8, 640)
_CUTOFFS_HZ: Final = (1_000, 24_000)
_TIMEOUT_S: Final = 3600.0
_SEED: Final = 20261126


class CodecUnavailable(Exception):
    """A codec cannot be tried on this machine; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec, its bit rate, and the low-pass that its encoder is told to use, None for its own."""

    name: str
    kbits: int
    cutoff_hz: int | None = None

    @property
    def setting(self) -> str:
        """The setting as the certificate names it."""
        return f"{self.kbits} kbit/s" + (f", -cutoff {self.cutoff_hz}" if self.cutoff_hz else "")


@dataclass(frozen=True, slots=True)
class CodecResult:
    """The repetitions after a codec. `advice` is the setting that would save them; None if none is needed or known."""

    codec: Codec
    repetitions: tuple[Repetition, ...]

    @property
    def heard_count(self) -> int:
        """How many of them are heard."""
        return sum(each.is_heard for each in self.repetitions)

    @property
    def advice(self) -> str | None:
        """The encoder setting that would save what the encoder cut off."""
        cut_hz = [each.cutoff_hz for each in self.repetitions if each.cutoff_hz is not None]
        is_whole = self.heard_count == len(self.repetitions)
        is_cut = bool(cut_hz) and (min(cut_hz) < CUTOFF_NEEDED_HZ or not is_whole)
        return _ADVICE.get(self.codec.name) if is_cut and self.codec.cutoff_hz is None else None


@dataclass(frozen=True, slots=True, eq=False)
class Excerpt:
    """A repetition with `EXCERPT_S` on either side, of shape (samples, channels), and where in it the frame begins."""

    samples: Samples
    begins: int
    at_s: float
    tones: FrameTones


def parse_codec(text: str) -> Codec:
    """Return the codec of a text such as `mp3:192`, or `mp3:192:20000` with a low-pass in Hz.

    Raises: ValueError.
    """
    name, *numbers = text.strip().split(":")
    if name not in _ENCODERS:
        raise ValueError(f"{name!r} is not one of {', '.join(_ENCODERS)}")
    if len(numbers) not in {1, 2} or not all(number.isdecimal() for number in numbers):
        raise ValueError(f"{text!r} must be written like mp3:192 or mp3:192:{CUTOFF_ADVISED_HZ}")
    kbits, *cutoff = (int(number) for number in numbers)
    if not _KBITS[0] <= kbits <= _KBITS[1]:
        raise ValueError(f"the bit rate must be {_KBITS[0]} to {_KBITS[1]} kbit/s")
    if cutoff and not _CUTOFFS_HZ[0] <= cutoff[0] <= _CUTOFFS_HZ[1]:
        raise ValueError(f"the low-pass must be {_CUTOFFS_HZ[0]} to {_CUTOFFS_HZ[1]} Hz")
    return Codec(name, kbits, cutoff[0] if cutoff else None)


def find_ffmpeg() -> str:
    """Return the path of ffmpeg.

    Raises: CodecUnavailable.
    """
    found = shutil.which("ffmpeg")
    if found is None:
        raise CodecUnavailable("ffmpeg is not installed; install it, or leave --codecs out")
    return found


def cut_excerpt(programme: Programme, start: int, channels: Sequence[int], tones: FrameTones) -> Excerpt:
    """Return a repetition with its surroundings.

    Raises: NotReadable; OSError.
    """
    rate = programme.sample_rate
    before = min(start, round(EXCERPT_S * rate))
    count = before + math.ceil(tones.length * rate / RATE_HZ) + round(EXCERPT_S * rate)
    return Excerpt(programme.read(start - before, count)[:, list(channels)], before, start / rate, tones)


def try_codecs(programme: Programme, repetitions: Sequence[Repetition], codecs: Sequence[Codec]) -> list[CodecResult]:
    """Try each codec on the repetitions in a finished file.

    Raises: CodecUnavailable; NotReadable; OSError.
    """
    channels = choose_channels(programme.channel_count, programme.speakers)
    shapes = {
        (each.frame, each.protocol): make_frame_tones(each.frame, each.protocol) for each in repetitions if codecs
    }

    def cut() -> Iterator[Excerpt]:
        for each in repetitions:
            start = round(each.at_s * programme.sample_rate)
            yield cut_excerpt(programme, start, channels, shapes[each.frame, each.protocol])

    return [try_codec(codec, cut(), programme.sample_rate) for codec in codecs]


def try_codec(codec: Codec, excerpts: Iterable[Excerpt], sample_rate: int) -> CodecResult:
    """Encode and decode the excerpts, and measure each repetition in what comes back.

    Only one excerpt is held in memory at a time.

    Raises: CodecUnavailable; OSError.
    """
    chance = default_rng(_SEED)
    measured: list[Repetition] = []
    with tempfile.TemporaryDirectory(prefix="soundmark-codec-") as name:
        folder = Path(name)
        source = folder / "programme.wav"
        spans = _write_source(excerpts, sample_rate, source)
        decoded = _code(codec, source, folder)
        at = 0
        for excerpt, length in spans:
            first, last = (round(place * RATE_HZ / sample_rate) for place in (at, at + length))
            measured.append(_measure(np.array(decoded[first:last], np.float64), excerpt, chance))
            at += length
    return CodecResult(codec, tuple(measured))


def _write_source(excerpts: Iterable[Excerpt], sample_rate: int, source: Path) -> list[tuple[Excerpt, int]]:
    """Write the excerpts behind each other; return each without its samples, and their number."""
    spans: list[tuple[Excerpt, int]] = []
    with contextlib.ExitStack() as stack:
        writer: soundfile.SoundFile | None = None
        for excerpt in excerpts:
            if writer is None:
                channel_count = excerpt.samples.shape[1]
                writer = stack.enter_context(
                    soundfile.SoundFile(source, "w", sample_rate, channel_count, subtype="PCM_24", format="RF64")
                )
            writer.write(np.clip(excerpt.samples, -1.0, 1.0))
            spans.append((replace(excerpt, samples=excerpt.samples[:0].copy()), len(excerpt.samples)))
    return spans


def _measure(sound: Samples, excerpt: Excerpt, chance: Generator) -> Repetition:
    tones = excerpt.tones
    begins = locate(sound, tones)
    if begins is None:
        return Repetition(
            excerpt.at_s, tones.frame, tones.protocol, None, -MARGIN_MAX_DB, is_heard=False, cutoff_hz=None
        )
    inner = sound[begins : begins + tones.length]
    return measure_sound(sound, begins, excerpt.at_s, tones, float(np.mean(np.square(inner))), chance)


def _code(codec: Codec, source: Path, folder: Path) -> "np.memmap[Any, np.dtype[np.float32]]":
    """Return what comes back, mono at 48 kHz, in a file that is not held in memory."""
    encoder, suffix = _ENCODERS[codec.name]
    encoded, decoded = folder / f"encoded.{suffix}", folder / "decoded.f32"
    low_pass = () if codec.cutoff_hz is None else ("-cutoff", str(codec.cutoff_hz))
    _run_ffmpeg("-i", source, "-c:a", encoder, "-b:a", f"{codec.kbits}k", *low_pass, encoded)
    _run_ffmpeg("-i", encoded, "-ac", "1", "-ar", str(RATE_HZ), "-f", "f32le", decoded)
    return np.memmap(decoded, np.float32, "r")


def _run_ffmpeg(*arguments: str | Path) -> None:
    command = [find_ffmpeg(), "-nostdin", "-v", "error", "-y", *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603 - a list, without a shell; the paths are ours
    except subprocess.TimeoutExpired:
        raise CodecUnavailable("ffmpeg did not finish within an hour") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise CodecUnavailable(f"ffmpeg failed: {lines[-1] if lines else done.returncode}")
