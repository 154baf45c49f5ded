"""Hear frames through a microphone (extra `soundmark-sdk[microphone]`)."""

import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, Self

from numpy.typing import NDArray

from soundmark_sdk.hearing import Frame, Listener
from soundmark_sdk.resampling import RATE_HZ, RATE_MIN_HZ

# A twentieth of a second is short compared with a frame (1.5 s) and long compared with the overhead of a block.
_BLOCKS_PER_SECOND: Final = 20


class MicrophoneUnavailable(RuntimeError):
    """There is no usable microphone: the extra, PortAudio, the device or the permission is missing."""


class SoundSource(AbstractContextManager["SoundSource"], Protocol):
    """A source of sound: a context manager that is read in blocks until it returns None."""

    @property
    def sample_rate(self) -> int:
        """Samples per second, at least 44,000, of what was read last."""
        ...

    def read(self) -> NDArray[Any] | None:
        """Wait for the next mono samples and return them, or None at the end of the sound."""
        ...


class Microphone:
    """One channel of an input device, through PortAudio and the `sounddevice` package."""

    def __init__(self, device: int | str | None = None, *, sample_rate: int | None = None) -> None:
        """Choose a device, by an id or a part of a name from `python -m sounddevice`, without opening it.

        The default `sample_rate` is that of the device, or 48 kHz if that could not carry a frame.

        Raises: MicrophoneUnavailable when the extra or PortAudio is not installed.
        """
        self._sounddevice = _import_sounddevice()
        self._device = device
        self._sample_rate = sample_rate
        self._stream: Any = None

    @property
    def sample_rate(self) -> int:
        """Samples per second, known when the microphone is open."""
        assert self._sample_rate is not None, "the rate is known only after the microphone was opened"
        return self._sample_rate

    def __enter__(self) -> Self:
        """Start recording.

        Raises: MicrophoneUnavailable when the device cannot be opened.
        """
        try:
            if self._sample_rate is None:
                own = round(self._sounddevice.query_devices(self._device, "input")["default_samplerate"])
                self._sample_rate = own if own >= RATE_MIN_HZ else RATE_HZ
            stream = self._sounddevice.InputStream(
                samplerate=self._sample_rate,
                device=self._device,
                channels=1,
                dtype="float32",
            )
            try:
                stream.start()
            except self._sounddevice.PortAudioError:
                stream.close()
                raise
        except (self._sounddevice.PortAudioError, ValueError):
            raise MicrophoneUnavailable(
                "The microphone cannot be opened: it is missing, access is denied, or it lacks this sample rate."
            ) from None
        self._stream = stream
        return self

    def __exit__(self, *_: object) -> None:
        stream, self._stream = self._stream, None
        stream.close()

    def read(self) -> NDArray[Any]:
        """Return the next twentieth of a second.

        Raises: MicrophoneUnavailable when the device goes away.
        """
        try:
            # The second value reports lost samples. The decoder tolerates a gap, and the frame is repeated.
            block, _ = self._stream.read(self.sample_rate // _BLOCKS_PER_SECOND)
        except self._sounddevice.PortAudioError:
            raise MicrophoneUnavailable("The microphone stopped.") from None
        samples: NDArray[Any] = block[:, 0]
        return samples


def listen(
    source: SoundSource | None = None, *, device: int | str | None = None, period_s: float | None = None
) -> Iterator[Frame]:
    """Yield each new frame as soon as it is heard, from a microphone or another source.

    `period_s` is as of `Listener`.

    It ends with the source (a microphone never ends) or when the iterator is closed. The device is open only from the
    first `next` until then. A source may change its `sample_rate` between two reads; listening begins anew then, and a
    frame that was heard before may be yielded again.

    Raises: MicrophoneUnavailable, at the first `next`, or when the device goes away; ValueError for a rate that cannot
    carry a frame, or for a period that `Listener` refuses.
    """
    with Microphone(device) if source is None else source as sound:
        samples = sound.read()
        while samples is not None:
            rate_hz = sound.sample_rate
            with Listener(rate_hz, period_s=period_s) as listener:
                while samples is not None and sound.sample_rate == rate_hz:
                    yield from listener.feed(samples)
                    samples = sound.read()
                yield from listener.finish()


def _import_sounddevice() -> Any:
    try:
        return importlib.import_module("sounddevice")
    except ImportError:
        raise MicrophoneUnavailable(
            "Listening needs sounddevice, which the extra soundmark-sdk[microphone] installs: pip install sounddevice"
        ) from None
    except OSError:  # what sounddevice raises when the shared library is missing
        raise MicrophoneUnavailable("PortAudio is not installed (Debian, Ubuntu: apt install libportaudio2).") from None
