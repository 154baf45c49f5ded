"""Hear broadcast frames in sound: in a stream, or in a piece of sound."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing.decoder import Decoder
from soundmark_sdk.hearing.repetitions import PERIOD_MAX_S, PERIOD_MIN_S
from soundmark_sdk.resampling import RATE_HZ, Resampler, Samples

# Floats may exceed full scale, as noise does in a mix: to clip it would hide what is below it. Beyond this is no sound.
_SAMPLE_MAX: Final = 64.0
# Frames that were reported and are not reported again. A hostile loudspeaker needs an hour to fill this.
_REPORTED_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Frame:
    """A broadcast frame: `text` is `XRC1:` and the token, and `token` is what `resolve` takes."""

    text: str
    token: str


class Listener:
    """A listener to a stream of mono samples that reports each frame once, however often it is repeated.

    It is not safe for several threads at once.
    """

    def __init__(self, sample_rate: int = RATE_HZ, *, period_s: float | None = None) -> None:
        """`period_s` is the time from one beginning of a repeated Code to the next, by the sender's clock.

        With it, repetitions of which each is too weak are heard together: up to eight within a minute.

        Raises: ValueError for a rate outside 44 to 768 kHz, or a period outside 1 to 60 seconds.
        """
        if period_s is not None and not PERIOD_MIN_S <= period_s <= PERIOD_MAX_S:
            raise ValueError(f"The period of a repetition must be {PERIOD_MIN_S:.0f} to {PERIOD_MAX_S:.0f} seconds.")
        self._resampler = Resampler(sample_rate)
        self._decoder: Decoder | None = Decoder(period_s=period_s)
        self._reported: OrderedDict[Frame, None] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the stream; closing again does nothing."""
        self._decoder = None

    def feed(self, samples: NDArray[Any]) -> list[Frame]:
        """Return the frames that these samples complete, except for those that were reported before.

        Samples are one-dimensional: floats, of which -1..1 is full scale, or integers in the full range of their type,
        any number at a time.

        Raises: ValueError for another shape or type; TypeError for no NumPy array; RuntimeError after `close`.
        """
        decoder = self._require_decoder()
        return list(self._report(decoder.feed(self._resampler.feed(convert_to_mono_float(samples)))))

    def finish(self) -> list[Frame]:
        """Return the frames that the end of the stream completes, as if half a second of silence followed."""
        decoder = self._require_decoder()
        return list(self._report([*decoder.feed(self._resampler.flush()), *decoder.finish()]))

    def _require_decoder(self) -> Decoder:
        if self._decoder is None:
            raise RuntimeError("This listener is closed.")
        return self._decoder

    def _report(self, letters: list[str]) -> Iterator[Frame]:
        for each in letters:
            frame = Frame(text=f"XRC1:brd_{each}", token=f"brd_{each}")
            if frame not in self._reported:
                yield frame
            self._reported[frame] = None
            self._reported.move_to_end(frame)
            if len(self._reported) > _REPORTED_MAX:
                self._reported.popitem(last=False)


def hear_samples(samples: NDArray[Any], sample_rate: int, *, period_s: float | None = None) -> list[Frame]:
    """Return the frames in a piece of mono sound, each once, in the order in which they end.

    `period_s` is as of `Listener`.

    Raises: ValueError and TypeError as `Listener` does.
    """
    with Listener(sample_rate, period_s=period_s) as listener:
        return [*listener.feed(samples), *listener.finish()]


def convert_to_mono_float(samples: NDArray[Any]) -> Samples:
    """Return samples as floats for the decoder: integers are scaled, and values that are not finite become 0.

    Raises: TypeError for anything but a NumPy array; ValueError for another shape or type of sample.
    """
    if not isinstance(samples, np.ndarray):
        raise TypeError("Samples must be a NumPy array, whose type says what full scale is.")
    if samples.ndim != 1:
        raise ValueError("Samples must be one-dimensional (one channel).")
    if np.issubdtype(samples.dtype, np.signedinteger):
        scaled: Samples = (samples / -float(np.iinfo(samples.dtype).min)).astype(np.float32)
        return scaled
    if not np.issubdtype(samples.dtype, np.floating):
        raise ValueError("Samples must be floats or signed integers.")
    # One NaN would spread through the decoder's spectrum and stay there.
    finite = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    clipped: Samples = np.clip(finite, -_SAMPLE_MAX, _SAMPLE_MAX).astype(np.float32)
    return clipped
