"""The band of the frames at a low rate: 14.6 to 19.9 kHz of a sound at 48 kHz, as 6,000 complex samples a second."""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.resampling import RATE_HZ, Samples

Band: TypeAlias = NDArray[np.complex64]

BAND_RATE_HZ: Final = 6_000
DECIMATION: Final = RATE_HZ // BAND_RATE_HZ
BLOCK: Final = 1024 // DECIMATION  # A block of the sender.
_CENTRE_HZ: Final = 17_230.0
_HALF_WIDTH_HZ: Final = 2_650.0
_TAPS: Final = 160
_SIDELOBES: Final = 7.0  # Kaiser's beta: what folds into the band is 70 dB down.


def _make_filter() -> NDArray[np.float32]:
    """Return the real and the imaginary part of the filter, of shape (taps, 2)."""
    times = np.arange(_TAPS) - (_TAPS - 1) / 2
    low_pass = np.sinc(2 * _HALF_WIDTH_HZ * times / RATE_HZ) * np.kaiser(_TAPS, _SIDELOBES)
    low_pass *= 2 * _HALF_WIDTH_HZ / RATE_HZ
    turning = 2 * np.pi * _CENTRE_HZ * times / RATE_HZ
    both = np.stack([low_pass * np.cos(turning), -low_pass * np.sin(turning)], axis=1)
    return both.astype(np.float32)


_FILTER: Final = _make_filter()


class Baseband:
    """A filter of a stream. A frequency appears modulo `BAND_RATE_HZ`."""

    def __init__(self) -> None:
        self._pending: Samples = np.zeros(_TAPS - DECIMATION, np.float32)

    def feed(self, samples: Samples) -> Band:
        """Return the samples of the band that these samples complete."""
        self._pending = np.concatenate([self._pending, samples])
        count = (len(self._pending) - _TAPS) // DECIMATION + 1
        if count <= 0:
            return np.zeros(0, np.complex64)
        windows = np.lib.stride_tricks.sliding_window_view(self._pending, _TAPS)[: count * DECIMATION : DECIMATION]
        band = np.ascontiguousarray(np.ascontiguousarray(windows) @ _FILTER).view(np.complex64)[:, 0]
        self._pending = self._pending[count * DECIMATION :]
        return band
