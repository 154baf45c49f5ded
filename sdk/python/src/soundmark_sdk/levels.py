"""Measure how loud a sound is, what the band of the frames holds, and where the sound is cut off."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.resampling import Samples

BAND_HZ: Final = (15_000, 19_500)
_BELOW_HZ: Final = (10_500, 15_000)
_ABOVE_HZ: Final = (19_750, 22_000)
# Bins of 15 to 30 Hz at every rate.
_BINS_PER_HZ: Final = 1 / 24
_FULL_SCALE: Final = 0.999
# A tone stands out from the median of the band by this much for a second, and its level hardly changes. In noise, the
# mean power of a bin is 2.5 dB above that of its mean level.
_TONE_DB: Final = 12.0
_TONE_SPREAD_DB: Final = 1.5
_TONE_BINS: Final = 3  # On each side: the main lobe of the window.
# The band is measured where it is loudest: in one second altogether.
_LOUDEST_S: Final = 1.0
# A cut: this much less within a kilohertz, with an even floor above it. Voices and instruments fade instead.
_CUT_DB: Final = 20.0
_FLOOR_SPREAD_DB: Final = 12.0
_CUT_MIN_HZ: Final = 4_000
_CUT_MAX_HZ: Final = 19_000
_SMALLEST: Final = 1e-20  # -200 dBFS: below what any recording holds.


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels in dBFS (a full-scale sine has a peak of 0 and an RMS of -3), each None for digital silence.

    `band_dbfs` is the level from 15 to 19.5 kHz in the loudest second of that band. `below_dbfs` and `above_dbfs` are
    the levels of its neighbours at the same moments, scaled to the same width. `full_scale_share` is the share of
    samples at full scale; floats beyond it are not clipped, and do not count. `cut_hz` is the frequency below the upper
    end of the band where the sound is cut off, or None. `tone_hz` is the frequency of the loudest steady tone in the
    band, or None, and `tone_share` its share of the energy there in the second where that is largest.
    """

    peak_dbfs: float | None
    rms_dbfs: float | None
    full_scale_share: float
    band_dbfs: float | None
    below_dbfs: float | None
    above_dbfs: float | None
    cut_hz: float | None
    tone_hz: float | None
    tone_share: float


class LevelMeter:
    """A meter for a recording in pieces of shape (samples, channels)."""

    def __init__(self, sample_rate: int) -> None:
        self._rate: Final = sample_rate
        self._size: Final = max(16, 2 ** round(math.log2(sample_rate * _BINS_PER_HZ)))
        self._window: Final = np.hanning(self._size)
        self._hz: Final = np.fft.rfftfreq(self._size, 1 / sample_rate)
        self._pending: Samples | None = None
        self._peak = 0.0
        self._square_sum = 0.0
        self._full_scale_count = self._sample_count = 0
        self._spectrum = np.zeros(len(self._hz))
        # For each window, the power of the band and of its neighbours.
        self._parts: list[NDArray[np.float64]] = []
        self._tones: Final = _ToneSearch(self._hz, math.ceil(sample_rate / self._size))

    def feed(self, samples: Samples) -> None:
        """Measure the next piece."""
        magnitude = np.abs(samples)
        self._peak = max(self._peak, float(magnitude.max(initial=0.0)))
        self._square_sum += float(np.sum(np.square(samples, dtype=np.float64)))
        self._full_scale_count += int(np.count_nonzero((magnitude >= _FULL_SCALE) & (magnitude <= 1)))
        self._sample_count += samples.size
        pending = samples if self._pending is None else np.concatenate([self._pending, samples])
        usable = len(pending) - len(pending) % self._size
        self._pending = pending[usable:]
        if usable:
            self._measure(pending[:usable])

    def summarize(self) -> Levels:
        """Return the levels of everything so far."""
        mean_square = self._square_sum / max(1, self._sample_count)
        band, below, above = self._find_loudest()
        return Levels(
            peak_dbfs=_to_decibels(self._peak**2),
            rms_dbfs=_to_decibels(mean_square),
            full_scale_share=self._full_scale_count / max(1, self._sample_count),
            band_dbfs=_to_decibels(band),
            below_dbfs=_to_decibels(below),
            above_dbfs=_to_decibels(above),
            cut_hz=self._find_cut_hz(),
            tone_hz=self._tones.hz,
            tone_share=self._tones.share,
        )

    def _measure(self, samples: Samples) -> None:
        # The scale makes the bins of a band add up to its mean square.
        scale = 2 / (self._size * float(np.sum(self._window**2))) / samples.shape[1]
        power = np.zeros((len(samples) // self._size, len(self._hz)))
        for channel in range(samples.shape[1]):
            windows = samples[:, channel].reshape(-1, self._size) * self._window
            power += np.abs(np.fft.rfft(windows, axis=1)) ** 2 * scale
        self._spectrum += power.sum(axis=0)
        self._parts.append(
            np.stack([self._measure_band(power, *edges) for edges in (BAND_HZ, _BELOW_HZ, _ABOVE_HZ)], axis=1)
        )
        self._tones.feed(power)

    def _measure_band(self, power: NDArray[np.float64], low_hz: float, high_hz: float) -> NDArray[np.float64]:
        bins = power[:, (self._hz >= low_hz) & (self._hz < high_hz)]
        width = (BAND_HZ[1] - BAND_HZ[0]) / (self._rate / self._size)
        mean: NDArray[np.float64] = bins.mean(axis=1) * width if bins.shape[1] else np.zeros(len(power))
        return mean

    def _find_loudest(self) -> tuple[float, float, float]:
        parts = np.concatenate(self._parts) if self._parts else np.zeros((0, 3))
        if not len(parts):
            return 0.0, 0.0, 0.0
        count = min(len(parts), math.ceil(_LOUDEST_S * self._rate / self._size))
        band, below, above = parts[np.argsort(parts[:, 0])[-count:]].mean(axis=0)
        return float(band), float(below), float(above)

    def _find_cut_hz(self) -> float | None:
        """Return the frequency below the upper end of the band where the spectrum drops steeply to an even floor."""
        spacing = self._rate / self._size
        smooth = np.convolve(self._spectrum, np.ones(9) / 9, mode="same")
        spectrum_db = 10 * np.log10(np.maximum(smooth, _SMALLEST))
        # The last bins show the filter of the converter.
        end = int(0.48 * self._rate / spacing)
        best: tuple[float, float] | None = None
        for cut in range(round(_CUT_MIN_HZ / spacing), min(round(_CUT_MAX_HZ / spacing), end - round(800 / spacing))):
            before = float(np.median(spectrum_db[cut - round(800 / spacing) : cut - round(100 / spacing)]))
            after = spectrum_db[cut + round(300 / spacing) : end]
            drop = before - float(after.max())
            if drop >= _CUT_DB and after.max() - np.median(after) <= _FLOOR_SPREAD_DB and (not best or drop > best[0]):
                best = drop, self._find_edge_hz(spectrum_db, cut, (before + float(after.max())) / 2)
        return None if best is None else best[1]

    def _find_edge_hz(self, spectrum_db: NDArray[np.float64], cut: int, middle_db: float) -> float:
        around = slice(cut - round(600 / (self._rate / self._size)), cut + round(600 / (self._rate / self._size)))
        below = np.flatnonzero(spectrum_db[around] < middle_db)
        return float(self._hz[around][below[0]]) if len(below) else float(self._hz[cut])


class _ToneSearch:
    """A search for a steady tone in the band, in a second at a time, from each quarter of a second on."""

    def __init__(self, hz: NDArray[np.floating[Any]], windows_in_second: int) -> None:
        self.hz: float | None = None
        self.share = 0.0
        self._windows: Final = windows_in_second
        self._is_in_band: Final = (hz >= BAND_HZ[0]) & (hz < BAND_HZ[1])
        self._band_hz: Final = hz[self._is_in_band]
        self._pending = np.zeros((0, len(self._band_hz)))

    def feed(self, power: NDArray[np.float64]) -> None:
        """Search the seconds that these windows complete; `power` has a row for each, and a column for each bin."""
        self._pending = np.concatenate([self._pending, power[:, self._is_in_band]])
        while len(self._pending) >= self._windows and len(self._band_hz):
            self._search(np.maximum(self._pending[: self._windows], _SMALLEST))
            self._pending = self._pending[-(-self._windows // 4) :]

    def _search(self, power: NDArray[np.float64]) -> None:
        mean = power.mean(axis=0)
        # The mean level is low where there is sound only at times.
        level_db = (10 * np.log10(power)).mean(axis=0)
        best = int(np.argmax(level_db))
        spread_db = 10 * np.log10(mean[best]) - level_db[best]
        if level_db[best] - np.median(level_db) < _TONE_DB or spread_db > _TONE_SPREAD_DB:
            return
        lobe = slice(max(0, best - _TONE_BINS), best + _TONE_BINS + 1)
        share = float(mean[lobe].sum() / mean.sum())
        if share > self.share:
            self.hz = float(np.average(self._band_hz[lobe], weights=mean[lobe]))
            self.share = share


def _to_decibels(power: float) -> float | None:
    return 10 * math.log10(power) if power > _SMALLEST else None
