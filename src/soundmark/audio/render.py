"""Frames to WAV files: one ggwave instance, one thread, and a queue with an end."""

import asyncio
import io
import re
import wave
from concurrent.futures import ThreadPoolExecutor
from typing import Final, cast, get_args

import ggwave

from soundmark.wire.private.audio import Protocol

FRAME_PATTERN: Final = r"XRC1:brd_[A-Za-z0-9_-]{16}"  # Contract, section 1.
PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)
SAMPLE_RATE_HZ: Final = 48_000
SAMPLE_BYTES: Final = 2
# Half of full scale (measured: peak 0.492, between the samples 0.500). Loudspeakers roll off in this band, so the sound
# should be strong. The other half is headroom: the sound is meant to be mixed with speech or music, and an amplifier at
# its limit makes audible difference tones of the carriers. The receiver decodes at a thousandth of this volume
# (docs/sound.md), so 6 dB more would gain nothing.
VOLUME: Final = 50
WAITING_MAX: Final = 64  # A quarter of a second of work: far less than the deadline of a private call.

_SAMPLE_FORMAT_INT16: Final = 4  # GGWAVE_SAMPLE_FORMAT_I16, which the binding does not export.
_FRAME: Final = re.compile(FRAME_PATTERN)


class QueueFull(Exception):
    """The queue is full."""


class Renderer:
    """A held ggwave instance. A process can have four at most, so it makes one, for one thread."""

    def __init__(self) -> None:
        ggwave.disableLog()  # Its log would print every frame to standard error.
        parameters = ggwave.getDefaultParameters()
        parameters["sampleFormatOut"] = _SAMPLE_FORMAT_INT16
        self._instance: int | None = ggwave.init(parameters)

    def render(self, frame: str, protocol: Protocol) -> bytes:
        """Return the WAV file of one frame, 48 kHz, mono, 16 bits: the same bytes every time.

        Raises: ValueError for a text that is not a frame, and for a protocol other than 3, 4 and 5. ggwave would read
            beyond its table for some protocols, and silently truncate a long text.
        """
        if _FRAME.fullmatch(frame) is None:
            raise ValueError("not a broadcast frame")
        if protocol not in PROTOCOLS:
            raise ValueError("not an ultrasound protocol")
        assert self._instance is not None, "the renderer is closed"
        samples = cast("bytes", ggwave.encode(frame, protocolId=protocol, volume=VOLUME, instance=self._instance))
        assert samples, "ggwave has a waveform for every frame"
        return _wav(samples)

    def close(self) -> None:
        """Return the instance to the process. Repeating it is safe."""
        if self._instance is not None:
            ggwave.free(self._instance)
            self._instance = None


class RenderQueue:
    """A queue that renders one frame after the other in its own thread, for at most `WAITING_MAX` callers at a time.

    One thread is enough: ggwave holds the interpreter's lock while it encodes. More processes use more cores.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer: Final = renderer
        self._thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="render")
        self._waiting_count = 0

    async def render(self, frame: str, protocol: Protocol) -> bytes:
        """Return the WAV file of one frame. A caller that is cancelled while it waits costs no rendering.

        Raises: QueueFull, at once; ValueError as `Renderer.render` does.
        """
        if self._waiting_count >= WAITING_MAX:
            raise QueueFull
        self._waiting_count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._renderer.render, frame, protocol
            )
        finally:
            self._waiting_count -= 1

    async def aclose(self) -> None:
        """Drop the callers that wait, finish the current rendering, and return the instance."""
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._renderer.close()


def _wav(samples: bytes) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(SAMPLE_BYTES)
        writer.setframerate(SAMPLE_RATE_HZ)
        writer.writeframes(samples)
    return file.getvalue()
