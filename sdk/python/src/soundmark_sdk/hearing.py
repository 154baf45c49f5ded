"""Hear broadcast frames in sound: in a stream, or in a piece of sound."""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import ggwave
import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.resampling import RATE_HZ, Resampler, Samples

# ggwave decodes at 48 kHz only when it gets multiples of this many samples (measured).
_CHUNK: Final = 1024
# A process can have four ggwave instances; the last is left to the program around us.
_DECODERS_MAX: Final = 3
_WAIT_FOR_DECODER_S: Final = 30.0
# ggwave reports a frame up to 0.3 s after its last tone (measured), and a recording may stop right there.
_TAIL_S: Final = 0.5
# The noise that is added to a chunk, 70 dB below its amplitude. In sound without any noise, such as that of a digital
# path, the bins between the tones hold only rounding errors. For about one token in a thousand (measured) these look
# like the end of a frame, each time it is played. With noise, the next playing is heard.
_DITHER: Final = 10 ** (-70 / 20)
# Frames that were reported and are not reported again. A hostile loudspeaker needs an hour to fill this.
_REPORTED_MAX: Final = 4096

_FRAME: Final = re.compile(rb"XRC1:(brd_[A-Za-z0-9_-]{16})")

_decoder_slots: Final = threading.BoundedSemaphore(_DECODERS_MAX)


@dataclass(frozen=True, slots=True)
class Frame:
    """A broadcast frame: `text` is `XRC1:` and the token, and `token` is what `resolve` takes."""

    text: str
    token: str


class Listener:
    """A listener to a stream of mono samples that reports each frame once, however often it is repeated.

    It holds one of the few decoders of the process until it is closed, so use it as a context manager. It is not safe
    for several threads at once.
    """

    def __init__(self, sample_rate: int = RATE_HZ) -> None:
        """Take a decoder.

        Raises: ValueError for a rate outside 44.1 to 768 kHz; RuntimeError when no decoder becomes free in 30 s.
        """
        self._resampler = Resampler(sample_rate)
        self._decoder: int | None = _acquire_decoder()
        self._pending: Samples = np.zeros(0, np.float32)
        self._noise: Final = np.random.default_rng(0)
        self._reported: OrderedDict[Frame, None] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Return the decoder; closing again does nothing."""
        if self._decoder is not None:
            decoder, self._decoder = self._decoder, None
            _release_decoder(decoder)

    def feed(self, samples: NDArray[Any]) -> list[Frame]:
        """Return the frames that these samples complete, except for those that were reported before.

        Samples are one-dimensional: floats in -1..1, or integers in the full range of their type, any number at a time.

        Raises: ValueError for another shape or type; RuntimeError after `close`.
        """
        return self._decode(self._resampler.feed(convert_to_mono_float(samples)))

    def finish(self) -> list[Frame]:
        """Return the frames that the end of the stream completes, as if half a second of silence followed."""
        tail = np.zeros(int(_TAIL_S * RATE_HZ), np.float32)
        return self._decode(np.concatenate([self._resampler.flush(), tail]))

    def _decode(self, samples: Samples) -> list[Frame]:
        if self._decoder is None:
            raise RuntimeError("This listener is closed.")
        self._pending = np.concatenate([self._pending, samples])
        usable = len(self._pending) - len(self._pending) % _CHUNK
        chunks = self._pending[:usable].reshape(-1, _CHUNK)
        self._pending = self._pending[usable:]
        # One chunk at a time, because ggwave returns only the last of several frames in one call.
        payloads = [ggwave.decode(self._decoder, chunk.tobytes()) for chunk in self._add_noise(chunks)]
        return [frame for payload in payloads if payload for frame in self._report(payload)]

    def _add_noise(self, chunks: Samples) -> Samples:
        amplitude = _DITHER * np.sqrt(np.mean(np.square(chunks), axis=1, keepdims=True))
        noisy: Samples = chunks + amplitude * self._noise.standard_normal(chunks.shape, np.float32)
        return noisy

    def _report(self, payload: bytes) -> Iterator[Frame]:
        match = _FRAME.fullmatch(payload)
        if match is None:
            return
        frame = Frame(text=payload.decode("ascii"), token=match[1].decode("ascii"))
        if frame not in self._reported:
            yield frame
        self._reported[frame] = None
        self._reported.move_to_end(frame)
        if len(self._reported) > _REPORTED_MAX:
            self._reported.popitem(last=False)


def hear_samples(samples: NDArray[Any], sample_rate: int) -> list[Frame]:
    """Return the frames in a piece of mono sound, each once, in the order in which they end.

    Raises: ValueError as `Listener` does.
    """
    # Noise may hide a frame by chance; shifted by half a chunk, the same frame is heard.
    return _hear_once(samples, sample_rate) or _hear_once(samples, sample_rate, delay=_CHUNK // 2)


def _hear_once(samples: NDArray[Any], sample_rate: int, delay: int = 0) -> list[Frame]:
    with Listener(sample_rate) as listener:
        silence = np.zeros(delay, np.float32)
        return [*listener.feed(silence), *listener.feed(samples), *listener.finish()]


def convert_to_mono_float(samples: NDArray[Any]) -> Samples:
    """Return samples as floats for the decoder: integers are scaled, and values that are not finite become 0.

    Raises: ValueError for another shape or type.
    """
    if samples.ndim != 1:
        raise ValueError("Samples must be one-dimensional (one channel).")
    if np.issubdtype(samples.dtype, np.signedinteger):
        scaled: Samples = (samples / -float(np.iinfo(samples.dtype).min)).astype(np.float32)
        return scaled
    if not np.issubdtype(samples.dtype, np.floating):
        raise ValueError("Samples must be floats or signed integers.")
    # One NaN would spread through the decoder's spectrum and stay there.
    finite = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    clipped: Samples = np.clip(finite, -1.0, 1.0).astype(np.float32)
    return clipped


def _acquire_decoder() -> int:
    if not _decoder_slots.acquire(timeout=_WAIT_FOR_DECODER_S):
        raise RuntimeError(f"All {_DECODERS_MAX} decoders of this process are in use. Close a listener.")
    ggwave.disableLog()
    decoder: int = ggwave.init(ggwave.getDefaultParameters())
    if decoder < 0:
        _decoder_slots.release()
        raise RuntimeError("The program around the SDK uses all ggwave instances of this process.")
    return decoder


def _release_decoder(decoder: int) -> None:
    ggwave.free(decoder)
    _decoder_slots.release()
