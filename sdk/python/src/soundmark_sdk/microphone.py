"""Hearing frames through a microphone (extra `soundmark-sdk[microphone]`)."""

import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, Self

from numpy.typing import NDArray

from soundmark_sdk.hearing import Frame, Listener
from soundmark_sdk.resampling import RATE_HZ, RATE_MIN_HZ

# A twentieth of a second: short beside a frame's 1.5 s, long beside a block's overhead.
_BLOCKS_PER_SECOND: Final = 20


class MicrophoneUnavailable(RuntimeError):  # noqa: N818 - says what is so, like the failures do
    """There is no microphone to listen through: the extra, PortAudio, the device or the permission is missing."""


class Source(AbstractContextManager["Source"], Protocol):
    """Where sound comes from: opened as a context, read in blocks until None."""

    @property
    def sample_rate(self) -> int:
        """Samples a second, at least 44 100."""
        ...

    def read(self) -> NDArray[Any] | None:
        """Return the next mono samples, waiting for them; None when the sound is over."""
        ...


class Microphone:
    """A `Source` over PortAudio through the `sounddevice` package, one channel of one input device."""

    def __init__(self, device: int | str | None = None, *, sample_rate: int | None = None) -> None:
        """Open nothing yet; `device` is an id or part of a name as `python -m sounddevice` lists them.

        Without `sample_rate` it is the device's own, or 48 kHz when that could not carry a frame.

        Raises: MicrophoneUnavailable when the extra or PortAudio is not installed.
        """
        self._sounddevice = _import_sounddevice()
        self._device = device
        self._sample_rate = sample_rate
        self._stream: Any = None

    @property
    def sample_rate(self) -> int:
        """Samples a second; known once the microphone is open."""
        assert self._sample_rate is not None, "The microphone is opened before it is asked for its rate."
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
                "The microphone cannot be opened: there is none, it may not be used, or not at this sample rate."
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
            # The second value tells of lost samples: the decoder stands a gap, and the frame comes again.
            block, _ = self._stream.read(self.sample_rate // _BLOCKS_PER_SECOND)
        except self._sounddevice.PortAudioError:
            raise MicrophoneUnavailable("The microphone stopped.") from None
        samples: NDArray[Any] = block[:, 0]
        return samples


def listen(source: Source | None = None, *, device: int | str | None = None) -> Iterator[Frame]:
    """Yield each new frame as soon as it is heard, from a microphone or any other source.

    It ends when the source does (a microphone never) or when the iterator is closed; the device is open only between
    the first `next` and then.

    Raises: MicrophoneUnavailable, at the first `next`, when there is no microphone to listen through.
    """
    with Microphone(device) if source is None else source as sound, Listener(sound.sample_rate) as listener:
        while (samples := sound.read()) is not None:
            yield from listener.feed(samples)
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
