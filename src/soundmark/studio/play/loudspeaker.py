"""A sound card, through PortAudio and the package `sounddevice` (extra `soundmark[play]`)."""

import asyncio
import importlib
import threading
from typing import Any, Final

from soundmark.kit.clock import Clock
from soundmark.studio.play.outputs import OutputEnded, OutputLost, RealTime
from soundmark.studio.play.sounds import RATE_HZ

# A device with power has room for a block of a tenth of a second long before.
_WRITE_MAX_S: Final = 1.0


class Loudspeaker:
    """An output device, by its number or a part of its name from `python -m sounddevice`; None: the default one."""

    def __init__(self, device: int | str | None, clock: Clock) -> None:
        """Raises: OutputEnded if the extra or PortAudio is not installed."""
        self._sounddevice: Final = _import_sounddevice()
        self._device: Final = device
        # A virtual device may take sound without playing it.
        self._pace: Final = RealTime(clock)
        self._stream: Any = None
        # Held by a thread that writes. Cancelling its task does not end it, and the stream must not be freed under it.
        self._writing: Final = threading.Lock()
        self._was_open = False

    async def open(self) -> None:
        """Open the device. A device that was lost is looked for among those that are connected now.

        Raises: OutputLost.
        """
        try:
            await asyncio.to_thread(self._open)
        except (self._sounddevice.PortAudioError, ValueError) as error:
            raise OutputLost(
                f"the sound card cannot be opened: {_first_line(error)}; `python -m sounddevice` lists those that can"
            ) from None

    def _open(self) -> None:
        if self._was_open:
            # PortAudio lists the devices when it starts, and again only when it is started again.
            self._sounddevice._terminate()  # noqa: SLF001 - the package's documentation names it for this
            self._sounddevice._initialize()  # noqa: SLF001 - as above
        self._was_open = True
        stream = self._sounddevice.RawOutputStream(
            samplerate=RATE_HZ, device=self._device, channels=1, dtype="int16", latency="low"
        )
        try:
            stream.start()
        except self._sounddevice.PortAudioError:
            stream.close()
            raise
        self._stream = stream

    async def write(self, block: bytes) -> None:
        """Play a block: the device takes it when it has room.

        Raises: OutputLost when the device goes away, and while it is not open.
        """
        if self._stream is None:
            raise OutputLost("the sound card is closed")
        self._pace.begin()
        try:
            await asyncio.to_thread(self._write, self._stream, block)
        except self._sounddevice.PortAudioError as error:
            self.close()
            raise OutputLost(f"the sound card stopped: {_first_line(error)}") from None
        await self._pace.end(block)

    def _write(self, stream: Any, block: bytes) -> None:
        with self._writing:
            if stream is self._stream:  # It was not closed before this thread began.
                stream.write(block)

    def close(self) -> None:
        """Stop once the block that is being written is taken, without playing what the device still has."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        is_idle = self._writing.acquire(timeout=_WRITE_MAX_S)
        try:
            stream.abort()
            if is_idle:  # Otherwise the device hangs, and the process keeps the stream to its end.
                stream.close()
        except self._sounddevice.PortAudioError:
            pass  # The device is gone, so it is silent.
        finally:
            if is_idle:
                self._writing.release()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["unknown reason"])[0]


def _import_sounddevice() -> Any:
    try:
        return importlib.import_module("sounddevice")
    except ImportError:
        raise OutputEnded(
            "playing through a sound card needs sounddevice, which the extra soundmark[play] installs; run"
            " `pip install sounddevice`, or write to a pipe or file with --out"
        ) from None
    except OSError:  # What sounddevice raises when the shared library is missing.
        raise OutputEnded(
            "playing through a sound card needs PortAudio (Debian, Ubuntu: apt install libportaudio2); or write to a"
            " pipe or file with --out"
        ) from None
