"""Streaming sample-rate conversion to the 48 kHz that frames are made at."""

import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.float32]

RATE_HZ: Final = 48_000
# Frames reach up to 19.5 kHz (measured), which needs Nyquist room; slower recordings have lost them.
RATE_MIN_HZ: Final = 44_100
# Four times the fastest rate in use; a bound for the filter's size.
RATE_MAX_HZ: Final = 768_000

# Zero crossings of the sinc on either side: measured 0.1 dB down at most at 19.5 kHz,
# and 80 dB where aliases would fold back below it.
_CROSSINGS: Final = 16
_KAISER_BETA: Final = 8.0
# Positions between two samples that the filter knows: rounding to them leaves an error below -70 dB at 19.5 kHz.
_PHASES_MAX: Final = 4096
# Outputs computed at a time, which bounds the memory of the gathered windows.
_BLOCK: Final = 8192


class Resampler:
    """A windowed-sinc converter from one fixed rate to 48 kHz, fed piece by piece.

    Its output, pieces joined, does not depend on how the input was cut. Output is some 0.3 ms late at most; `flush`
    brings out the rest.
    """

    def __init__(self, sample_rate: int) -> None:
        """Raises: ValueError for a rate below 44.1 kHz, which cannot carry a frame, or above 768 kHz."""
        if not RATE_MIN_HZ <= sample_rate <= RATE_MAX_HZ:
            raise ValueError(f"A frame can be heard at {RATE_MIN_HZ} to {RATE_MAX_HZ} samples a second only.")
        divisor = math.gcd(sample_rate, RATE_HZ)
        # Output n lies at input position n * step / parts.
        self._step, self._parts = sample_rate // divisor, RATE_HZ // divisor
        self._phases = min(self._parts, _PHASES_MAX)
        self._half = math.ceil(_CROSSINGS * max(1.0, sample_rate / RATE_HZ))
        self._bank = _filter_bank(self._half, self._phases, cutoff=min(1.0, RATE_HZ / sample_rate))
        self._pending: Samples = np.zeros(self._half - 1, np.float32)
        # Where the next output lies after the first window's middle in `_pending`, in 1/parts of an input sample.
        self._offset = 0

    def feed(self, samples: Samples) -> Samples:
        """Return what these samples (mono, -1..1) complete, at 48 kHz."""
        if self._step == self._parts:
            return samples
        self._pending = np.concatenate([self._pending, samples])
        available = len(self._pending) - 2 * self._half + 1
        count = max(0, -(-(available * self._parts - self._offset) // self._step)) if available > 0 else 0
        pieces = [self._convert(first, min(_BLOCK, count - first)) for first in range(0, count, _BLOCK)]
        consumed, self._offset = divmod(self._offset + count * self._step, self._parts)
        self._pending = self._pending[consumed:]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)

    def flush(self) -> Samples:
        """Return what is left, as if silence followed."""
        return self.feed(np.zeros(self._half, np.float32))

    def _convert(self, first: int, count: int) -> Samples:
        positions = self._offset + np.arange(first, first + count, dtype=np.int64) * self._step
        whole, rest = np.divmod(positions, self._parts)
        phases = (rest * self._phases + self._parts // 2) // self._parts
        windows = np.lib.stride_tricks.sliding_window_view(self._pending, 2 * self._half)[whole]
        converted: Samples = np.einsum("nk,nk->n", windows, self._bank[phases])
        return converted


def _filter_bank(half: int, phases: int, cutoff: float) -> Samples:
    """Return `phases + 1` rows of `2 * half` weights; row p reads the signal p/phases after the middle sample."""
    taps = np.arange(1 - half, half + 1, dtype=np.float64)
    distance = taps[np.newaxis, :] - np.arange(phases + 1)[:, np.newaxis] / phases
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (distance / half) ** 2, 0, 1))) / np.i0(_KAISER_BETA)
    return (cutoff * np.sinc(cutoff * distance) * window).astype(np.float32)
