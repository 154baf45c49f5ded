"""Find the beginnings and ends of frames, whether or not the frames can be decoded."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.resampling import RATE_HZ, Samples

# A marker is 16 tones that last for 16 times 1024 samples. Each lies in a pair of neighbouring places, 46.875 Hz apart,
# from 15 kHz up. At the beginning of a frame the tones take the lower place of even pairs and the upper place of odd
# pairs; at its end it is the other way round (ggwave 0.4, measured on its output).
_WINDOW: Final = 1024
_PLACES_PER_WINDOW: Final = RATE_HZ / _WINDOW
_FIRST_PLACE: Final = 320
_PAIRS: Final = 16
_PATTERN: Final = np.where(np.arange(_PAIRS) % 2 == 0, 1.0, -1.0)
# Two places on each side without a tone. Without these, a marker that is shifted by a pair looks like its opposite.
_PLACES: Final = np.arange(-2, 2 * _PAIRS + 2)
# Half a window: each marker fills some thirty of these steps.
_STEP: Final = _WINDOW // 2
# Noise reaches this in one of 60,000 windows; ten such windows in a row are a marker.
_MATCH_MIN: Final = 0.6
_RUN_MIN: Final = 10
# A marker after a gap, such as a codec makes, is not a new one, up to its own length after it was found. A Code that is
# interrupted and begun again has two of a kind less than an airtime apart.
_APART_MIN: Final = 40
# The speeds to try: each 0.05 % from the next, and 0.1 % where only an accident of the rate leads. At 0.3 % the tones
# have moved by a whole place. A film at the speed of television is 4.2 % fast, and 44.1 kHz at 48 kHz 8.8 %.
SPEED_ERROR_MAX: Final = 0.1
_NEAR: Final = np.arange(-40, 41) * 0.0005
_FAR: Final = np.arange(0.021, SPEED_ERROR_MAX + 0.0005, 0.001)
_SPEEDS: Final = 1 + np.concatenate([-_FAR[::-1], _NEAR, _FAR])
# Zeros after each window add places between those of the transform.
_TRANSFORM: Final = 8 * _WINDOW
_WINDOWS_AT_ONCE: Final = 256


@dataclass(frozen=True, slots=True)
class Markers:
    """How many frames begin and end in a sound, and the speed at which it was played (1.003 is 0.3 % too fast).

    `contrast_db` compares the power of the marker tones with the power between them; None without a marker.
    """

    start_count: int
    end_count: int
    speed: float
    contrast_db: float | None


class MarkerSearch:
    """A search for markers in a stream of mono samples at 48 kHz."""

    def __init__(self) -> None:
        self._pending: Samples = np.zeros(0, np.float32)
        # One row for beginnings and one for ends; one column for each speed.
        self._runs = np.zeros((2, len(_SPEEDS)), int)
        self._counts = np.zeros((2, len(_SPEEDS)), int)
        self._since = np.full((2, len(_SPEEDS)), _APART_MIN)
        self._weights = np.zeros(len(_SPEEDS))
        self._tone_power = np.zeros(len(_SPEEDS))
        self._other_power = np.zeros(len(_SPEEDS))
        place_hz = (_FIRST_PLACE + _PLACES) * _PLACES_PER_WINDOW
        self._bins: Final = np.rint(np.outer(_SPEEDS, place_hz) * _TRANSFORM / RATE_HZ).astype(int)

    def feed(self, samples: Samples) -> None:
        """Search the windows that these samples complete."""
        self._pending = np.concatenate([self._pending, samples])
        if len(self._pending) < _WINDOW:
            return
        windows = np.lib.stride_tricks.sliding_window_view(self._pending, _WINDOW)[::_STEP]
        for first in range(0, len(windows), _WINDOWS_AT_ONCE):
            self._search(windows[first : first + _WINDOWS_AT_ONCE])
        self._pending = self._pending[len(windows) * _STEP :]

    def summarize(self) -> Markers:
        """Return the markers so far, at the speed at which they match best."""
        best = int(np.argmax(self._weights)) if self._weights.any() else int(np.flatnonzero(_SPEEDS == 1)[0])
        starts, ends = (int(count) for count in self._counts[:, best])
        if not starts + ends:
            return Markers(0, 0, 1.0, None)
        floor = max(self._other_power[best], self._tone_power[best] * 1e-9)
        return Markers(starts, ends, float(_SPEEDS[best]), 10 * float(np.log10(self._tone_power[best] / floor)))

    def _search(self, windows: Samples) -> None:
        power = np.abs(np.fft.rfft(windows, _TRANSFORM, axis=1)) ** 2
        places = power[:, self._bins]  # For each window, speed and place.
        lower, upper = places[:, :, 2:-2:2], places[:, :, 3:-2:2]
        both = lower + upper
        likeness = np.divide(lower - upper, both, out=np.zeros_like(both), where=both > 0) @ _PATTERN / _PAIRS
        outside = places[:, :, [0, 1, -2, -1]].mean(axis=2)
        mean = both.mean(axis=2)
        likeness = likeness * (1 - np.clip(np.divide(outside, mean, out=np.zeros_like(mean), where=mean > 0), 0, 1) / 4)
        is_lower = _PATTERN > 0
        as_start = np.where(is_lower, lower, upper).mean(axis=2)
        as_end = np.where(is_lower, upper, lower).mean(axis=2)
        for window in range(len(windows)):
            self._count(likeness[window], as_start[window], as_end[window])

    def _count(self, likeness: NDArray[np.float64], as_start: NDArray[np.float64], as_end: NDArray[np.float64]) -> None:
        matches = np.stack([likeness, -likeness]) >= _MATCH_MIN
        self._runs = np.where(matches, self._runs + 1, 0)
        is_new = (self._runs == _RUN_MIN) & (self._since >= _APART_MIN)
        self._counts += is_new
        self._since = np.where(is_new, 0, self._since + 1)
        is_start, is_end = self._runs >= _RUN_MIN
        self._weights += np.abs(likeness) * (is_start | is_end)
        self._tone_power += as_start * is_start + as_end * is_end
        self._other_power += as_end * is_start + as_start * is_end
