"""Which codecs a Code survives, alone and under a programme: `python -m bench.codecs` measures it.

The tables go to docs/sound.md and bench/MEASURED.md. Needs ffmpeg (`scripts/install-tools ffmpeg`).
"""

import argparse
import os
import platform
import shutil
import string
import subprocess
import tempfile
import wave
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray
from rich.progress import track
from soundmark_sdk import hear_samples

from bench.machine import processor
from bench.programmes import PROGRAMME_RMS_DBFS, PROGRAMMES, RATE_HZ, Stereo, make_programme
from soundmark.audio.synthesis import PROTOCOLS, render_wav
from soundmark.wire.private.audio import Protocol

_DOCS: Final = Path(__file__).parent.parent / "docs" / "sound.md"
_MEASURED: Final = Path(__file__).with_name("MEASURED.md")
_TOKEN_ALPHABET: Final = string.ascii_letters + string.digits + "-_"
_SEED: Final = 20261122
# The level of a Code against the programme, as the ratio of their RMS; None is a Code alone, as Core renders it.
LEVELS_DB: Final = (None, -6, -12, -20, -30)
# Five programmes, one after the other.
_FRAMES_PER_PROGRAMME: Final = 40
_PROGRAMME_S: Final = 40.0
# Each frame lies somewhere in its slot, and the slot leaves room for a codec's delay (at most 0.1 s, measured).
_ROOM_S: Final = 0.6
_DELAY_S: Final = 0.2

_KBIT: Final[Mapping[str, tuple[str, Sequence[int]]]] = {
    "MP3": ("libmp3lame", (128, 160, 192, 256, 320)),
    "AAC": ("aac", (96, 128, 192, 256)),
    "Opus": ("libopus", (64, 96, 128, 192)),
    "Vorbis": ("libvorbis", (128, 192)),
    "MP2": ("libtwolame", (192, 256, 384)),
    "MP2 by FFmpeg": ("mp2", (192, 256, 384)),
}
# Encoders that cut off the band at these rates unless they are told where to.
_OPENED: Final = {"MP3": (96, 128, 160, 192), "AAC": (96, 128)}
_CUTOFF_HZ: Final = 20_000
_SUFFIXES: Final = {
    "libmp3lame": "mp3",
    "aac": "m4a",
    "libopus": "opus",
    "libvorbis": "ogg",
    "libtwolame": "mp2",
    "mp2": "mp2",
    "flac": "flac",
}
# What the encoders are packaged as in Debian; FFmpeg's own need no other.
_PACKAGES: Final = ("ffmpeg", "libmp3lame0", "libopus0", "libvorbisenc2", "libtwolame0")


@dataclass(frozen=True, slots=True)
class Codec:
    """An encoder of FFmpeg's and its bit rate; neither for the WAV file itself. None leaves the low-pass to it."""

    name: str
    encoder: str | None = None
    kbit: int | None = None
    cutoff_hz: int | None = None


def _codecs() -> Iterator[Codec]:
    yield Codec("no codec")
    yield Codec("FLAC", "flac")
    for name, (encoder, rates) in _KBIT.items():
        for kbit in rates:
            yield Codec(f"{name} {kbit} kbit/s", encoder, kbit)
        for kbit in _OPENED.get(name, ()):
            yield Codec(f"{name} {kbit} kbit/s, low-pass at 20 kHz", encoder, kbit, _CUTOFF_HZ)


CODECS: Final = tuple(_codecs())


@dataclass(frozen=True, slots=True)
class Slot:
    """Where in a recording a frame lies, with the room around it, and under which programme."""

    begin: int
    end: int
    text: str
    programme: str


@dataclass(frozen=True, slots=True)
class CodecScore:
    """How many frames were heard under each programme, of how many; and how many that nobody sent."""

    codec: str
    protocol: Protocol
    level_db: int | None
    heard_counts: Mapping[str, int]
    sent_count: int
    wrong_count: int

    @property
    def heard_count(self) -> int:
        return sum(self.heard_counts.values())


def lay_out(
    protocol: Protocol, level_db: int | None, programmes: Mapping[str, Stereo], count: int
) -> tuple[Stereo, list[Slot]]:
    """Return one recording of every programme with `count` frames, and where they lie. The Code is in the middle."""
    chance = default_rng([_SEED, protocol, 0 if level_db is None else -level_db])
    pieces: list[Stereo] = []
    slots: list[Slot] = []
    at = 0
    for name, programme in programmes.items():
        for number in range(count):
            text = "XRC1:brd_" + "".join(chance.choice(list(_TOKEN_ALPHABET), 16))
            code = _samples(render_wav(text, protocol))
            length = len(code) + round(_ROOM_S * RATE_HZ)
            place = round(_DELAY_S * RATE_HZ / 2) + int(chance.integers(0, round((_ROOM_S - _DELAY_S) * RATE_HZ)))
            piece = np.zeros((length, 2), np.float32)
            gain = 1.0
            if level_db is not None:
                begin = number * length % len(programme)
                piece += np.take(programme, np.arange(begin, begin + length), axis=0, mode="wrap")
                gain = 10 ** ((PROGRAMME_RMS_DBFS + level_db) / 20) / float(np.sqrt(np.mean(code**2)))
            piece[place : place + len(code)] += (gain * code)[:, np.newaxis].astype(np.float32)
            pieces.append(piece)
            slots.append(Slot(at, at + length, text, name))
            at += length
    return np.concatenate(pieces), slots


def measure(
    codec: Codec, protocol: Protocol, level_db: int | None, recording: Path, slots: Sequence[Slot]
) -> CodecScore:
    """Encode and decode a recording and hear each slot of it, both channels mixed, as a microphone hears two boxes."""
    with tempfile.TemporaryDirectory() as folder:
        sound = _read(_through(codec, recording, Path(folder))).mean(axis=1)
    heard_counts = dict.fromkeys((slot.programme for slot in slots), 0)
    wrong_count = 0
    for slot in slots:
        # A codec may be late; the next frame begins later than that.
        heard = {frame.text for frame in hear_samples(sound[slot.begin : slot.end + _late(codec)], RATE_HZ)}
        heard_counts[slot.programme] += slot.text in heard
        wrong_count += bool(heard - {slot.text})
    return CodecScore(codec.name, protocol, level_db, heard_counts, len(slots), wrong_count)


def _late(codec: Codec) -> int:
    return 0 if codec.encoder is None else round(_DELAY_S * RATE_HZ / 2)


def _through(codec: Codec, recording: Path, folder: Path) -> Path:
    """Return the recording as it comes out of the codec."""
    if codec.encoder is None:
        return recording
    encoded, decoded = folder / f"encoded.{_SUFFIXES[codec.encoder]}", folder / "decoded.wav"
    rate = [] if codec.kbit is None else ["-b:a", f"{codec.kbit}k"]
    cutoff = [] if codec.cutoff_hz is None else ["-cutoff", str(codec.cutoff_hz)]
    _ffmpeg("-i", recording, "-c:a", codec.encoder, *rate, *cutoff, encoded)
    _ffmpeg("-i", encoded, "-c:a", "pcm_s16le", "-ar", str(RATE_HZ), decoded)
    return decoded


def _ffmpeg(*arguments: str | Path) -> None:
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-threads", "1", *map(str, arguments)]
    subprocess.run(command, check=True)


def _samples(wav: bytes) -> NDArray[np.float64]:
    # Core renders mono, 16 bits, with a header of 44 bytes.
    return np.frombuffer(wav[44:], "<i2") / 32768


def _write(recording: Stereo, path: Path) -> None:
    peak = float(np.abs(recording).max())
    assert peak < 1, "programmes leave room for a Code"
    with wave.open(str(path), "wb") as writer:
        writer.setnchannels(2)
        writer.setsampwidth(2)
        writer.setframerate(RATE_HZ)
        writer.writeframes(np.round(recording * 32767).astype("<i2").tobytes())


def _read(path: Path) -> NDArray[np.float32]:
    with wave.open(str(path), "rb") as reader:
        assert (reader.getnchannels(), reader.getframerate()) == (2, RATE_HZ), "as it was encoded"
        samples = np.frombuffer(reader.readframes(reader.getnframes()), "<i2").reshape(-1, 2)
    return (samples / 32768).astype(np.float32)


def measure_all(protocols: Sequence[Protocol], count: int) -> list[CodecScore]:
    """Return the scores of every codec, level and protocol, of `count` frames a programme; one process a core."""
    programmes = {name: make_programme(name, _PROGRAMME_S) for name in PROGRAMMES}
    scores: list[CodecScore] = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool, tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "recording.wav"
        for protocol in protocols:
            for level_db in LEVELS_DB:
                sound, slots = lay_out(protocol, level_db, programmes, count)
                _write(sound, recording)
                running = [pool.submit(measure, codec, protocol, level_db, recording, slots) for codec in CODECS]
                title = f"protocol {protocol}, {_level_name(level_db)}"
                scores += [task.result() for task in track(running, description=title)]
    return scores


def _level_name(level_db: int | None) -> str:
    return "alone" if level_db is None else f"−{-level_db} dB"


def table(scores: Sequence[CodecScore], protocol: Protocol) -> Iterator[str]:
    """Yield the scores of one protocol as the lines of a Markdown table, one codec a line."""
    yield f"| protocol {protocol} | " + " | ".join(map(_level_name, LEVELS_DB)) + " |"
    yield "|---|" + "---:|" * len(LEVELS_DB)
    for codec in CODECS:
        found = {s.level_db: s for s in scores if (s.codec, s.protocol) == (codec.name, protocol)}
        yield f"| {codec.name} | " + " | ".join(str(found[level_db].heard_count) for level_db in LEVELS_DB) + " |"


def table_by_programme(scores: Sequence[CodecScore], protocol: Protocol) -> Iterator[str]:
    """Yield the same by programme: in each cell how many were heard under each, in the order of the programmes."""
    yield f"| protocol {protocol}: {' / '.join(PROGRAMMES)} | " + " | ".join(map(_level_name, LEVELS_DB[1:])) + " |"
    yield "|---|" + "---|" * len(LEVELS_DB[1:])
    for codec in CODECS:
        found = {s.level_db: s for s in scores if (s.codec, s.protocol) == (codec.name, protocol)}
        cells = [" / ".join(str(found[db].heard_counts[name]) for name in PROGRAMMES) for db in LEVELS_DB[1:]]
        yield f"| {codec.name} | " + " | ".join(cells) + " |"


def summary(scores: Sequence[CodecScore]) -> str:
    """Return the tables for docs/sound.md."""
    return "\n".join([*table(scores, 4), "", *_circumstances(scores)])


def details(scores: Sequence[CodecScore]) -> str:
    """Return the tables for bench/MEASURED.md: each measured protocol, and each programme by itself."""
    protocols = list(dict.fromkeys(score.protocol for score in scores))
    lines = [line for protocol in protocols for line in [*table(scores, protocol), ""]]
    lines += [line for protocol in protocols for line in [*table_by_programme(scores, protocol), ""]]
    return "\n".join([*lines, *_circumstances(scores)])


def _circumstances(scores: Sequence[CodecScore]) -> Iterator[str]:
    yield f"Heard of {scores[0].sent_count} frames a cell, each with a token of its own, {len(scores)} cells in all."
    yield f"Frames heard that nobody had sent: {sum(score.wrong_count for score in scores)}."
    yield (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores of {processor()}, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, seed {_SEED}; encoders "
        f"from Debian: {', '.join(_packages())}."
    )


def _packages() -> Iterator[str]:
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *_PACKAGES]
    yield from subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


def write(page: Path, measured: str) -> None:
    """Put `measured` between the two marks of `page`."""
    begin, end = (
        "<!-- measured: codecs (written by python -m bench.codecs) -->",
        "<!-- measured: codecs end -->",
    )
    before, found, rest = page.read_text("utf-8").partition(begin)
    assert found, f"{page} has the marks"
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{measured}\n{end}{after}", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="print the tables and leave the documents alone")
    parser.add_argument("--protocol", type=int, choices=PROTOCOLS, action="append", help="another one besides 4")
    parser.add_argument("--count", type=int, default=_FRAMES_PER_PROGRAMME, help="frames under each programme")
    options = parser.parse_args()
    if shutil.which("ffmpeg") is None:
        parser.exit(1, "ffmpeg is missing: scripts/install-tools ffmpeg\n")
    scores = measure_all(sorted({4, *(options.protocol or ())}), options.count)
    if options.print:
        print(details(scores))  # noqa: T201 - this program's output
    else:
        write(_DOCS, summary(scores))
        write(_MEASURED, details(scores))


if __name__ == "__main__":
    main()
