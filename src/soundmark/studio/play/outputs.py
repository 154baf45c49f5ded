"""Where the sound goes: a pipe or a file; `loudspeaker` has the sound card."""

import asyncio
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from soundmark.kit.clock import Clock
from soundmark.studio.play.sounds import RATE_HZ, SAMPLE_BYTES

# A pipe whose reader is ready takes so much at once (POSIX: PIPE_BUF is at least 512; Linux: 4096).
_CHUNK_BYTES: Final = 4096
# So much sound may wait in front of a reader. After a stop it still sounds.
_LEAD_S: Final = 0.4
_BYTES_PER_S: Final = RATE_HZ * SAMPLE_BYTES
# "As long as the file is", in a header that is written before the sound. Readers take it for that.
_UNKNOWN: Final = 0xFFFFFFFF
_HEADER_BYTES: Final = 44
_RIFF_LEFT_OUT: Final = 8  # The size of a RIFF file does not count its first two words.


class OutputLost(Exception):
    """The output takes no more sound, for a reason that the message names; it may come back."""


class OutputEnded(Exception):
    """The output is gone for good, for a reason that the message names."""


class Output(Protocol):
    """What takes the sound, a block at a time and no faster than it is heard."""

    async def open(self) -> None:
        """Get ready. Raises: OutputLost or OutputEnded."""
        ...

    async def write(self, block: bytes) -> None:
        """Take a block and return when the next one is wanted. Raises: OutputLost or OutputEnded."""
        ...

    def close(self) -> None:
        """Stop at once and finish what was written. Closing again does nothing."""
        ...


class RealTime:
    """The pace of sound, for outputs that would take it faster than it is heard."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._due_s: float | None = None

    def begin(self) -> None:
        """Call this before a block is written. A reader that was slow gets no burst afterwards."""
        now_s = self._clock.monotonic_s()
        self._due_s = now_s if self._due_s is None else max(self._due_s, now_s)

    async def end(self, block: bytes) -> None:
        """Call this when a block was written: it waits until the output is at most `_LEAD_S` ahead."""
        assert self._due_s is not None, "a block was begun"
        self._due_s += len(block) / _BYTES_PER_S
        await asyncio.sleep(max(0.0, self._due_s - _LEAD_S - self._clock.monotonic_s()))


class StreamOutput:
    """A file, or the writing end of a pipe: raw samples, or a WAV file if `is_wav`.

    It takes sound in real time, because Codes expire and are revoked while it is written.
    """

    def __init__(self, open_descriptor: Callable[[], int], name: str, clock: Clock, *, is_wav: bool) -> None:
        """`open_descriptor` raises OSError if it cannot."""
        self._open_descriptor: Final = open_descriptor
        self._name: Final = name
        self._pace: Final = RealTime(clock)
        self._is_wav: Final = is_wav
        self._descriptor: int | None = None
        self._is_pipe = False
        self._sound_bytes = 0

    async def open(self) -> None:
        """Open it and write the header. Opening again does nothing."""
        if self._descriptor is not None:
            return
        try:
            self._descriptor = self._open_descriptor()
        except OSError as error:
            raise OutputEnded(f"{self._name} cannot be written: {error.strerror}") from None
        self._is_pipe = _is_pipe(self._descriptor)
        if self._is_wav:
            await self._write_all(self._descriptor, _header(_UNKNOWN, _UNKNOWN))

    async def write(self, block: bytes) -> None:
        """Write a block, at most `_LEAD_S` before it is due."""
        assert self._descriptor is not None, "it was opened"
        self._pace.begin()
        await self._write_all(self._descriptor, block)
        self._sound_bytes += len(block)
        await self._pace.end(block)

    def close(self) -> None:
        """State the length in the header of a file, and close it."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        riff_bytes = self._sound_bytes + _HEADER_BYTES - _RIFF_LEFT_OUT
        try:
            if self._is_wav and not self._is_pipe and riff_bytes < _UNKNOWN:
                os.pwrite(descriptor, _header(riff_bytes, self._sound_bytes), 0)
        except OSError:
            pass  # A device such as /dev/null; the header says that the length is unknown.
        finally:
            os.close(descriptor)

    async def _write_all(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                if self._is_pipe:
                    await _until_writable(descriptor)
                rest = rest[os.write(descriptor, rest[:_CHUNK_BYTES]) :]
        except BrokenPipeError:
            raise OutputEnded(f"nothing reads {self._name} any more") from None
        except OSError as error:
            raise OutputEnded(f"{self._name} cannot be written: {error.strerror}") from None


def make_file_output(path: Path, clock: Clock, *, force: bool) -> StreamOutput:
    """Return an output that writes to `path`, a WAV file if its name ends so.

    A file is created or, with `force`, overwritten when the output is opened. A named pipe waits for its reader then.
    """

    def open_descriptor() -> int:
        is_special = path.exists() and not stat.S_ISREG(path.stat().st_mode)
        flags = os.O_RDWR if is_special else os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    return StreamOutput(open_descriptor, str(path), clock, is_wav=path.suffix.lower() == ".wav")


async def _until_writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _header(riff_bytes: int, sound_bytes: int) -> bytes:
    """Return the header of a WAV file with one channel of 16 bits."""
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", riff_bytes, b"WAVE", b"fmt ", 16, 1, 1, RATE_HZ, _BYTES_PER_S, SAMPLE_BYTES, 8 * SAMPLE_BYTES),
        *(b"data", sound_bytes),
    )
