"""Benchmark of soundmark-receiver in Chromium: what it hears compared with ggwave, how fast, and at what cost.

`python -m bench.receiver --count N` compares the decoders with more or fewer sounds.
"""

import argparse
import base64
import contextlib
import io
import os
import shutil
import tempfile
import time
import wave
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import psutil
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Page, sync_playwright
from rich.progress import track

from bench.console import running_console
from bench.decoding import make_recordings
from bench.degradations import CONDITIONS
from bench.figures import Figure, keep, show
from bench.hearing import hear_by_ggwave
from soundmark.audio.synthesis import PROTOCOLS, SAMPLE_RATE_HZ, render_wav
from soundmark.embedded.postgres import RunningCluster
from soundmark.wire.private.audio import Protocol

_COUNT: Final = 12
_WORKERS: Final = 2
_AHEAD: Final = 4
_TIMED_COUNT: Final = 30
_LISTENING_S: Final = 20.0
_TOKEN: Final = "brd_bGlzdGVuaW5nLWJl"
# Nothing answers there: hearing is measured, not resolving.
_NO_CORE: Final = "http://127.0.0.1:9"
_HEAR_FILES: Final = """async (recordings) => {
  const { hearFile } = await import('/static/receiver/index.js');
  const heard = [];
  for (const recording of recordings) {
    const file = new Blob([Uint8Array.from(atob(recording), (each) => each.charCodeAt(0))]);
    const beganAtMs = performance.now();
    const frames = await hearFile(file);
    heard.push({ texts: frames.map((frame) => frame.text), ms: performance.now() - beganAtMs });
  }
  return heard;
}"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One condition and protocol: of `count` sounds, how many each decoder heard, and the browser heard wrongly."""

    condition: str
    protocol: Protocol
    count: int
    ggwave_count: int
    browser_count: int
    wrong_count: int


def receiver(_: RunningCluster) -> list[Figure]:
    """Measure the decoder in Chromium against ggwave over the whole corpus."""
    return compare_decoders(_COUNT)


def compare_decoders(count: int) -> list[Figure]:
    """Compare what both decoders hear of `count` sounds for each condition and protocol."""
    with _listening_page() as page:
        return _compare(list(_measure_cells(page, count)))


def listening(_: RunningCluster) -> list[Figure]:
    """Measure how fast a recording is heard in Chromium, and what it costs to listen."""
    with _listening_page() as page:
        return [_describe_times(_measure_times(page)), _describe_listening(_measure_listening(page))]


def _measure_cells(page: Page, count: int) -> Iterator[Cell]:
    """Yield the cells; ggwave hears the next ones on the other processor meanwhile."""
    places = [(condition, protocol) for condition in CONDITIONS for protocol in PROTOCOLS]
    with ProcessPoolExecutor(_WORKERS, mp_context=get_context("spawn")) as pool:
        waiting = iter(places)
        running: list[Future[Any]] = [pool.submit(_record, *place, count) for place in islice(waiting, _AHEAD)]
        for condition, protocol in track(places, description="Listening"):
            recordings, ggwave_count = running.pop(0).result()
            running += [pool.submit(_record, *place, count) for place in islice(waiting, 1)]
            heard = page.evaluate(_HEAR_FILES, [base64.b64encode(each).decode() for _, each in recordings])
            texts = [(sent, each["texts"]) for (sent, _), each in zip(recordings, heard, strict=True)]
            browser_count = sum(sent in found for sent, found in texts)
            wrong_count = sum(any(text != sent for text in found) for sent, found in texts)
            yield Cell(condition, protocol, count, ggwave_count, browser_count, wrong_count)


def _record(condition: str, protocol: Protocol, count: int) -> tuple[list[tuple[str, bytes]], int]:
    """Return recordings, and how many of them ggwave hears."""
    recordings = list(make_recordings(condition, protocol, count))
    heard = sum(sent in hear_by_ggwave(*soundfile.read(io.BytesIO(each))) for sent, each in recordings)
    return recordings, heard


def _measure_times(page: Page) -> list[float]:
    """Return how long it takes to read and hear a recording of three seconds, warm."""
    (_, recording), *_ = make_recordings("white noise, SNR 5 dB", 4, 1)
    three_s = base64.b64encode(_cut(recording, 3.0)).decode()
    page.evaluate(_HEAR_FILES, [three_s] * 5)
    return [float(each["ms"]) for each in page.evaluate(_HEAR_FILES, [three_s] * _TIMED_COUNT)]


def _measure_listening(page: Page) -> float:
    """Return the share of one processor that the page takes to listen, in all processes of the browser."""
    idle_s = _spend_processor_s(_LISTENING_S)
    page.locator("#start").click()
    page.locator("#heard article").wait_for(timeout=60_000)
    listening_s = _spend_processor_s(_LISTENING_S)
    page.locator("#stop").click()
    return (listening_s - idle_s) / _LISTENING_S


def _spend_processor_s(duration_s: float) -> float:
    before_s = _processor_s()
    time.sleep(duration_s)
    return _processor_s() - before_s


def _processor_s() -> float:
    total_s = 0.0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "chrom" in child.name():
                times = child.cpu_times()
                total_s += times.user + times.system
    return total_s


def _compare(cells: Sequence[Cell]) -> list[Figure]:
    worse = [cell for cell in cells if cell.browser_count < cell.ggwave_count]
    better = sum(cell.browser_count > cell.ggwave_count for cell in cells)
    total = sum(cell.count for cell in cells)
    browser, ggwave = (sum(counts) for counts in zip(*((c.browser_count, c.ggwave_count) for c in cells), strict=True))
    named = ", ".join(f"{c.condition} ({c.protocol}): {c.browser_count} and {c.ggwave_count}" for c in worse)
    return [
        Figure(
            f"Decoder in Chromium: conditions of docs/sound.md, of {len(cells)}, in which it hears fewer sounds",
            f"{len(worse)}; in {better} it hears more{': ' + named if named else ''}",
            f"ggwave, the same {cells[0].count} sounds each",
            len(worse),
            "at most",
            0,
        ),
        Figure(
            "The same: sounds heard of all",
            f"{browser:,} of {total:,}; {sum(cell.wrong_count for cell in cells)} frames that nobody sent",
            f"ggwave: {ggwave:,}",
            browser / ggwave,
            "at least",
            1,
        ),
    ]


def _describe_times(times_ms: Sequence[float]) -> Figure:
    return Figure(
        "Recording of 3 s read and heard in Chromium",
        f"p50 {median(times_ms):.0f} ms, longest {max(times_ms):.0f} ms of {len(times_ms)}",
        "",
        median(times_ms),
        "at most",
        150,
        " ms",
    )


def _describe_listening(share: float) -> Figure:
    return Figure(
        "Live listening on /listen, its spectrum included: share of one core",
        f"{share:.1%} over {_LISTENING_S:.0f} s, all processes of the browser",
        "less the same page without listening",
        100 * share,
        "at most",
        15,
        " %",
    )


@contextlib.contextmanager
def _listening_page() -> Iterator[Page]:
    """Open the console's listening page in a browser whose microphone plays a file again and again."""
    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("there is no chromium; `make test-tools` installs it")
    with tempfile.TemporaryDirectory() as folder, running_console(_NO_CORE) as url, sync_playwright() as playwright:
        microphone = _write_broadcast(Path(folder) / "broadcast.wav")
        flags = ["--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={microphone}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        page = browser.new_context(permissions=["microphone"]).new_page()
        page.goto(f"{url}/listen")
        page.locator("#listen[data-ready]").wait_for()
        yield page
        browser.close()


def _write_broadcast(file: Path) -> Path:
    """Write a Code every four seconds, under noise."""
    with wave.open(io.BytesIO(render_wav(f"XRC1:{_TOKEN}", 4))) as reader:
        code = np.frombuffer(reader.readframes(reader.getnframes()), "<i2")
    samples = np.random.default_rng(0).normal(0, 300, 4 * SAMPLE_RATE_HZ)
    samples[: len(code)] += code / 4
    file.write_bytes(_store(samples))
    return file


def _store(samples: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(SAMPLE_RATE_HZ)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def _cut(recording: bytes, duration_s: float) -> bytes:
    """Return a recording of exactly this length."""
    with wave.open(io.BytesIO(recording)) as reader:
        samples = np.frombuffer(reader.readframes(reader.getnframes()), "<i2")
    length = round(duration_s * SAMPLE_RATE_HZ)
    return _store(np.resize(np.pad(samples, (0, max(0, length - len(samples)))), length))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=_COUNT, help="sounds for each condition and protocol")
    parser.add_argument("--print", action="store_true", help="leave the pages of bench/ alone")
    options = parser.parse_args()
    figures = compare_decoders(options.count)
    show(figures)
    if not options.print:
        keep("receiver", figures)


if __name__ == "__main__":
    main()
