"""Convert a stream of samples to 48 kHz, the rate at which frames are made."""

import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.float32]

RATE_HZ: Final = 48_000
# Frames reach up to 19.5 kHz (measured), and recordings with a lower rate have lost that.
RATE_MIN_HZ: Final = 44_100
# Four times the highest rate in use. It limits the size of the filter.
RATE_MAX_HZ: Final = 768_000

# The zero crossings of the sinc on either side. With 16, the loss at 19.5 kHz is 0.1 dB at most, and frequencies whose
# aliases would fall below that are 80 dB down (measured).
_CROSSINGS: Final = 16
_KAISER_BETA: Final = 8.0
# The positions between two samples that the filter has. Rounding to them leaves an error below -70 dB at 19.5 kHz.
_PHASES_MAX: Final = 4096
# The outputs that are computed at a time, which limits the memory for their windows.
_BLOCK: Final = 8192


class Resampler:
    """A windowed-sinc converter from one fixed rate to 48 kHz.

    The joined output does not depend on the sizes of the pieces of input. It is at most 0.3 ms late, and `flush`
    returns the rest.
    """

    def __init__(self, sample_rate: int) -> None:
        """Raises: ValueError for a rate below 44.1 kHz, which cannot carry a frame, or above 768 kHz."""
        if not RATE_MIN_HZ <= sample_rate <= RATE_MAX_HZ:
            raise ValueError(f"Frames can be heard only at {RATE_MIN_HZ} to {RATE_MAX_HZ} samples per second.")
        divisor = math.gcd(sample_rate, RATE_HZ)
        # Output n is the input at position n * step / parts.
        self._step, self._parts = sample_rate // divisor, RATE_HZ // divisor
        self._phases = min(self._parts, _PHASES_MAX)
        self._half = math.ceil(_CROSSINGS * max(1.0, sample_rate / RATE_HZ))
        self._bank = _filter_bank(self._half, self._phases, cutoff=min(1.0, RATE_HZ / sample_rate))
        self._pending: Samples = np.zeros(self._half - 1, np.float32)
        # The distance of the next output from the middle of the first window, in 1/parts of an input sample.
        self._offset = 0

    def feed(self, samples: Samples) -> Samples:
        """Return the output at 48 kHz that these samples (mono, -1..1) complete."""
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
        """Return the rest of the output, as if silence followed."""
        return self.feed(np.zeros(self._half, np.float32))

    def _convert(self, first: int, count: int) -> Samples:
        positions = self._offset + np.arange(first, first + count, dtype=np.int64) * self._step
        whole, rest = np.divmod(positions, self._parts)
        phases = (rest * self._phases + self._parts // 2) // self._parts
        windows = np.lib.stride_tricks.sliding_window_view(self._pending, 2 * self._half)[whole]
        converted: Samples = np.einsum("nk,nk->n", windows, self._bank[phases])
        return converted


def _filter_bank(half: int, phases: int, cutoff: float) -> Samples:
    """Return `phases + 1` rows of `2 * half` weights; row p is for the position p/phases after the middle sample."""
    taps = np.arange(1 - half, half + 1, dtype=np.float64)
    distance = taps[np.newaxis, :] - np.arange(phases + 1)[:, np.newaxis] / phases
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (distance / half) ** 2, 0, 1))) / np.i0(_KAISER_BETA)
    return (cutoff * np.sinc(cutoff * distance) * window).astype(np.float32)
