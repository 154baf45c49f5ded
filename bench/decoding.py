"""How degraded a sound may be and still be heard: `python -m bench.decoding` measures it for docs/sound.md."""

import argparse
import io
import os
import platform
import string
import wave
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng
from rich.progress import track
from soundmark_sdk import hear

from bench.degradations import CONDITIONS, Sound
from soundmark.audio.synthesis import PROTOCOLS, SAMPLE_RATE_HZ, render_wav
from soundmark.wire.private.audio import Protocol

_PAGE: Final = Path(__file__).parent.parent / "docs" / "sound.md"
_BEGIN: Final = "<!-- measured: begin (written by python -m bench.decoding) -->"
_END: Final = "<!-- measured: end -->"
_TOKEN_ALPHABET: Final = string.ascii_letters + string.digits + "-_"
_SEED: Final = 20261121
_LEAD_MAX_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Score:
    """Of `count` sounds: how many were heard, and how many frames were heard that nobody sent."""

    condition: str
    protocol: Protocol
    count: int
    heard_count: int
    wrong_count: int


def measure(condition: str, protocol: Protocol, count: int) -> Score:
    """Render, degrade, store as WAV and hear `count` random frames."""
    heard_count = wrong_count = 0
    for sent, recording in make_recordings(condition, protocol, count):
        heard = [frame.text for frame in hear(io.BytesIO(recording))]
        heard_count += sent in heard
        wrong_count += any(text != sent for text in heard)
    return Score(condition, protocol, count, heard_count, wrong_count)


def make_recordings(condition: str, protocol: Protocol, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield random frames, each with the WAV file of its degraded sound; the same ones in every run."""
    chance = default_rng([_SEED, protocol, zlib.crc32(condition.encode())])
    for _ in range(count):
        sent = random_frame(chance)
        sound = CONDITIONS[condition](_played(render_wav(sent, protocol), chance), chance)
        yield sent, _stored(sound)


def random_frame(chance: Generator) -> str:
    """Return a frame with a random token."""
    return "XRC1:brd_" + "".join(chance.choice(list(_TOKEN_ALPHABET), 16))


def _played(wav: bytes, chance: Generator) -> Sound:
    # Nobody starts to listen on the first sample: the sound may begin anywhere between the decoder's steps.
    with wave.open(io.BytesIO(wav)) as reader:
        samples = np.frombuffer(reader.readframes(reader.getnframes()), "<i2") / 32768
    before, after = (np.zeros(chance.integers(1, round(_LEAD_MAX_S * SAMPLE_RATE_HZ))) for _ in range(2))
    return Sound(np.concatenate([before, samples, after]), SAMPLE_RATE_HZ)


def _stored(sound: Sound) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(sound.stored_bits // 8)
        writer.setframerate(sound.rate_hz)
        if sound.stored_bits == 8:
            writer.writeframes(np.clip(np.round(sound.samples * 128) + 128, 0, 255).astype("u1").tobytes())
        else:
            writer.writeframes(np.clip(np.round(sound.samples * 32768), -32768, 32767).astype("<i2").tobytes())
    return file.getvalue()


def measure_all(count: int) -> list[Score]:
    """Return the scores of every condition and protocol, measured on every core."""
    cases = [(condition, protocol, count) for condition in CONDITIONS for protocol in PROTOCOLS]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        running = [pool.submit(measure, *task) for task in cases]
        return [task.result() for task in track(running, description="Listening")]


def table(scores: Sequence[Score]) -> Iterator[str]:
    """Yield the scores as the lines of a Markdown table, one condition per line."""
    yield "| what happened to the sound | protocol 3 | protocol 4 | protocol 5 |"
    yield "|---|---:|---:|---:|"
    for condition, group in groupby(scores, key=lambda score: score.condition):
        rates = " | ".join(f"{100 * score.heard_count / score.count:.0f} %" for score in group)
        yield f"| {condition} | {rates} |"


def report(scores: Sequence[Score]) -> str:
    """Return the measured part of docs/sound.md."""
    wrong_count = sum(score.wrong_count for score in scores)
    total_count = sum(score.count for score in scores)
    lines = [
        *table(scores),
        "",
        f"{scores[0].count} random frames a cell, {total_count} sounds in all.",
        f"Frames heard that nobody had sent: {wrong_count}.",
        f"Measured on {_machine()}.",
    ]
    return "\n".join(lines)


def _machine() -> str:
    models = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return (
        f"{platform.node()} ({model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}), "
        f"Python {platform.python_version()}, NumPy {version('numpy')}, seed {_SEED}"
    )


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def write(page: Path, measured: str) -> None:
    """Put `measured` between the two marks of `page`."""
    before, _, rest = page.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n{measured}\n{_END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="sounds for each condition and protocol")
    parser.add_argument("--print", action="store_true", help="print the table and leave docs/sound.md alone")
    options = parser.parse_args()
    measured = report(measure_all(options.count))
    if options.print:
        print(measured)  # noqa: T201 - this program's output
    else:
        write(_PAGE, measured)


if __name__ == "__main__":
    main()
