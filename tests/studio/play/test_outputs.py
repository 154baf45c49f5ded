"""Pipes and files: in real time, with a header that is true, and with an end that is said."""

import asyncio
import errno
import fcntl
import os
import select
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import soundfile
from support.processes.fake_clock import FakeClock

from soundmark.kit.clock import SystemClock
from soundmark.studio.play import outputs
from soundmark.studio.play.outputs import OutputEnded, StreamOutput, make_file_output

BLOCK = bytes(range(200)) * 48  # A tenth of a second.


@pytest.fixture
def paused_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that outputs make, which take no time."""
    pauses: list[float] = []

    async def sleep(duration_s: float) -> None:
        pauses.append(duration_s)

    # In this module alone: with the loop's own `sleep`, a Core that the other tests share would never yield again.
    monkeypatch.setattr(outputs, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    return pauses


async def test_a_wav_file_states_its_length(tmp_path: Path, paused_s: list[float]) -> None:
    path = tmp_path / "out.WAV"
    output = make_file_output(path, SystemClock(), force=False)
    await output.open()
    for _ in range(3):
        await output.write(BLOCK)
    # Until it is closed, the header says that the length is unknown, and readers take all there is.
    assert soundfile.info(str(path)).frames >= 3 * 4800
    output.close()
    output.close()
    sound, rate = soundfile.read(path, dtype="int16")
    assert (rate, sound.tobytes()) == (48_000, 3 * BLOCK)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert paused_s


async def test_another_file_holds_only_samples(tmp_path: Path, paused_s: list[float]) -> None:
    path = tmp_path / "out.raw"
    output = make_file_output(path, SystemClock(), force=False)
    await output.open()
    await output.write(BLOCK)
    output.close()
    assert path.read_bytes() == BLOCK
    assert len(paused_s) == 1


async def test_a_file_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "out.raw"
    path.write_text("something else, and longer")
    with pytest.raises(OutputEnded, match=r"out\.raw cannot be written: File exists"):
        await make_file_output(path, SystemClock(), force=False).open()
    output = make_file_output(path, SystemClock(), force=True)
    assert path.read_bytes(), "nothing is overwritten before it is opened"
    await output.open()
    output.close()
    assert path.read_bytes() == b""


async def test_sound_is_written_no_faster_than_it_is_heard(tmp_path: Path, paused_s: list[float]) -> None:
    """A file takes everything at once, and Codes expire in real time."""
    clock = FakeClock()
    output = make_file_output(tmp_path / "out.raw", clock, force=False)
    await output.open()
    for _ in range(8):
        await output.write(BLOCK)
    output.close()
    assert [round(pause_s, 1) for pause_s in paused_s] == [0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4]


async def test_a_slow_reader_gets_no_burst_afterwards(tmp_path: Path, paused_s: list[float]) -> None:
    clock = FakeClock()
    output = make_file_output(tmp_path / "out.raw", clock, force=False)
    await output.open()
    await output.write(BLOCK)
    clock.advance(seconds=60)
    for _ in range(5):
        await output.write(BLOCK)
    output.close()
    assert paused_s[-1] > 0.05


async def test_the_end_of_a_pipe_s_reader_is_the_end() -> None:
    reading, writing = os.pipe()
    output = StreamOutput(lambda: writing, "standard output", SystemClock(), is_wav=False)
    await output.open()
    await output.write(BLOCK[:200])
    assert os.read(reading, 400) == BLOCK[:200]
    os.close(reading)
    with pytest.raises(OutputEnded, match="nothing reads standard output any more"):
        await output.write(BLOCK)
    output.close()


async def test_a_reader_that_stops_reading_stops_only_the_sound() -> None:
    """A full pipe must not keep the loop from seeing a signal or a revocation."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    output = StreamOutput(lambda: writing, "pipe", SystemClock(), is_wav=False)
    await output.open()
    block = asyncio.ensure_future(output.write(BLOCK))
    while not select.select([reading], [], [], 0)[0]:
        await asyncio.to_thread(int)
    assert not block.done()
    block.cancel()
    with pytest.raises(asyncio.CancelledError):
        await block
    output.close()
    os.close(reading)


async def test_a_full_disk_is_the_end_and_leaves_a_file_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paused_s: list[float]
) -> None:
    path = tmp_path / "out.wav"
    output = make_file_output(path, SystemClock(), force=False)
    await output.open()
    await output.write(BLOCK)
    monkeypatch.setattr(outputs, "os", SimpleNamespace(**{**vars(os), "write": failing(errno.ENOSPC)}))
    with pytest.raises(OutputEnded, match=r"out\.wav cannot be written: No space left on device"):
        await output.write(BLOCK)
    output.close()
    assert soundfile.info(str(path)).frames == 4800
    assert paused_s


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    return fail


async def test_a_named_pipe_takes_samples_as_they_come(tmp_path: Path, paused_s: list[float]) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    output = make_file_output(path, SystemClock(), force=False)
    await output.open()
    await output.write(BLOCK)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(reading, 2 * len(BLOCK)) == BLOCK
    os.close(reading)
    output.close()
    assert paused_s
