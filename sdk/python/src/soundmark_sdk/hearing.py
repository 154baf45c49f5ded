"""Hearing broadcast frames in sound: one decoder for a stream, one function for a recording."""

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

# ggwave decodes at 48 kHz when it is fed multiples of this many samples, and else never (measured).
_CHUNK: Final = 1024
# ggwave holds four instances in a process; the last is left to the program around us.
_DECODERS_MAX: Final = 3
_WAIT_FOR_DECODER_S: Final = 30.0
# ggwave reports a frame up to 0.3 s after its last tone (measured), so that a recording that stops there is heard.
_TAIL_S: Final = 0.5
# The part of a chunk's amplitude that is added to it as noise, 70 dB below it. In sound without any noise, a digital
# path's, the bins between the tones hold nothing but rounding, which for about one token in a thousand (measured) looks
# like the mark of a frame's end, wherever it is played. Noise makes that an accident that the next playing does not
# repeat.
_DITHER: Final = 10 ** (-70 / 20)
# Frames remembered as reported; a hostile loudspeaker needs an hour to fill it.
_REMEMBERED_MAX: Final = 4096

_FRAME: Final = re.compile(rb"XRC1:(brd_[A-Za-z0-9_-]{16})")

_decoder_slots: Final = threading.BoundedSemaphore(_DECODERS_MAX)


@dataclass(frozen=True, slots=True)
class Frame:
    """A broadcast frame that was heard: `text` is `XRC1:` and the token that `resolve` takes."""

    text: str
    token: str


class Listener:
    """Hears frames in a stream of mono samples and reports each frame once, however often it is repeated.

    It holds one of the process's few decoders until it is closed: use it as a context manager. Not for several threads
    at once.
    """

    def __init__(self, sample_rate: int = RATE_HZ) -> None:
        """Raises: ValueError for a rate outside 44.1 to 768 kHz; RuntimeError when no decoder becomes free in 30 s."""
        self._resampler = Resampler(sample_rate)
        self._decoder: int | None = _acquire_decoder()
        self._pending: Samples = np.zeros(0, np.float32)
        self._chance: Final = np.random.default_rng(0)
        self._reported: OrderedDict[Frame, None] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the decoder back; closing again does nothing."""
        if self._decoder is not None:
            decoder, self._decoder = self._decoder, None
            _release_decoder(decoder)

    def feed(self, samples: NDArray[Any]) -> list[Frame]:
        """Return the frames that these samples complete and that were not reported before.

        Samples are one-dimensional: floats in -1..1, or integers of their type's full range. Any number at a time.

        Raises: ValueError for another shape or type; RuntimeError after `close`.
        """
        return self._decode(self._resampler.feed(as_mono_float(samples)))

    def finish(self) -> list[Frame]:
        """Return the frames that the stream's end completes, as if half a second of silence followed it."""
        tail = np.zeros(int(_TAIL_S * RATE_HZ), np.float32)
        return self._decode(np.concatenate([self._resampler.flush(), tail]))

    def _decode(self, samples: Samples) -> list[Frame]:
        if self._decoder is None:
            raise RuntimeError("This listener is closed.")
        self._pending = np.concatenate([self._pending, samples])
        usable = len(self._pending) - len(self._pending) % _CHUNK
        chunks = self._pending[:usable].reshape(-1, _CHUNK)
        self._pending = self._pending[usable:]
        # One chunk at a time: of several frames in one call, ggwave returns the last only.
        payloads = [ggwave.decode(self._decoder, chunk.tobytes()) for chunk in self._dithered(chunks)]
        return [frame for payload in payloads if payload for frame in self._report(payload)]

    def _dithered(self, chunks: Samples) -> Samples:
        amplitude = _DITHER * np.sqrt(np.mean(np.square(chunks), axis=1, keepdims=True))
        dithered: Samples = chunks + amplitude * self._chance.standard_normal(chunks.shape, np.float32)
        return dithered

    def _report(self, payload: bytes) -> Iterator[Frame]:
        heard = _FRAME.fullmatch(payload)
        if heard is None:
            return
        frame = Frame(text=payload.decode("ascii"), token=heard[1].decode("ascii"))
        if frame not in self._reported:
            yield frame
        self._reported[frame] = None
        self._reported.move_to_end(frame)
        if len(self._reported) > _REMEMBERED_MAX:
            self._reported.popitem(last=False)


def hear_samples(samples: NDArray[Any], sample_rate: int) -> list[Frame]:
    """Return the frames in a piece of mono sound, each once, in the order in which they end.

    Raises: ValueError as `Listener` does.
    """
    # A frame that an accident of noise hid is heard at another place in the decoder's chunks.
    return _hear_once(samples, sample_rate) or _hear_once(samples, sample_rate, late_by=_CHUNK // 2)


def _hear_once(samples: NDArray[Any], sample_rate: int, late_by: int = 0) -> list[Frame]:
    with Listener(sample_rate) as listener:
        silence = np.zeros(late_by, np.float32)
        return [*listener.feed(silence), *listener.feed(samples), *listener.finish()]


def as_mono_float(samples: NDArray[Any]) -> Samples:
    """Return samples as floats that the decoder can take: integers scaled, what is not finite silenced.

    Raises: ValueError for another shape or type.
    """
    if samples.ndim != 1:
        raise ValueError("Samples must be one-dimensional (one channel).")
    if np.issubdtype(samples.dtype, np.signedinteger):
        scaled: Samples = (samples / -float(np.iinfo(samples.dtype).min)).astype(np.float32)
        return scaled
    if not np.issubdtype(samples.dtype, np.floating):
        raise ValueError("Samples must be floats or signed integers.")
    # One NaN would spread through the decoder's spectrum for good.
    finite = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    clipped: Samples = np.clip(finite, -1.0, 1.0).astype(np.float32)
    return clipped


def _acquire_decoder() -> int:
    if not _decoder_slots.acquire(timeout=_WAIT_FOR_DECODER_S):
        raise RuntimeError(f"All {_DECODERS_MAX} decoders of this process are in use; close a listener.")
    ggwave.disableLog()
    decoder: int = ggwave.init(ggwave.getDefaultParameters())
    if decoder < 0:
        _decoder_slots.release()
        raise RuntimeError("ggwave has no instance left in this process.")
    return decoder


def _release_decoder(decoder: int) -> None:
    ggwave.free(decoder)
    _decoder_slots.release()
