"""Where frames may begin: the tones that every frame has in common, over time and clock."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing.baseband import Band
from soundmark_sdk.hearing.frame_code import KNOWN_GROUPS, KNOWN_NIBBLES, NIBBLES, TONES
from soundmark_sdk.hearing.tone_grid import HOPS_PER_GROUP, ToneGrid, find_spectra

Scores: TypeAlias = NDArray[np.float32]

# One known tone of pure chance scores 1 in the mean, 24 of them 24 with a deviation of 5.
_SCORE_MIN: Final = 46.0
# Of one tone. A steady tone of somebody else must not outweigh the other tones.
_TONE_SCORE_MAX: Final = 12.0
_SHARE_MAX: Final = np.float32(1 - np.exp(-_TONE_SCORE_MAX / (TONES - 1)))
APART: Final = HOPS_PER_GROUP // 2
_PREFIX_HOPS: Final = HOPS_PER_GROUP * (KNOWN_GROUPS - 1)
_SMALLEST: Final = np.float32(1e-30)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where the data of a frame may begin, in samples of the band."""

    protocol: int
    start: float
    clock: float
    score: float
    copies: int = 1  # Repetitions that were heard together. This is the last one, and the score is their mean.


class PrefixSearch:
    """A search in a stream of the band, for one protocol."""

    def __init__(self, grid: ToneGrid) -> None:
        self._grid: Final = grid
        self._pending: Band = np.zeros(0, np.complex64)
        self._bins: Final = grid.bins.ravel()
        known = NIBBLES * TONES * np.arange(len(grid.clocks))[:, None, None]
        self._known: Final = (known + TONES * np.arange(NIBBLES) + KNOWN_NIBBLES).ravel()
        # Of each clock, known group and window.
        self._scores: Scores = np.zeros((len(grid.clocks), KNOWN_GROUPS, 0), np.float32)
        self._gone: int = 0  # The number of windows whose scores were dropped.
        # What the last samples completed: the score of each clock and window together, of shape (clocks, windows).
        self.completed: Scores = np.zeros((len(grid.clocks), 0), np.float32)

    def feed(self, band: Band) -> list[Candidate]:
        """Return the candidates that these samples complete. Their starts count from the first of the stream."""
        self.completed = self.completed[:, :0]
        self._pending = np.concatenate([self._pending, band])
        grid = self._grid
        if len(self._pending) < grid.group:
            return []
        windows = np.lib.stride_tricks.sliding_window_view(self._pending, grid.group)[:: grid.hop]
        self._pending = self._pending[len(windows) * grid.hop :]
        self._scores = np.concatenate([self._scores, self._score(find_spectra(windows * grid.window, grid.size))], 2)
        return self._find_peaks()

    def _score(self, spectra: NDArray[np.float32]) -> Scores:
        """Return how the known tones of each group stand out in each window, of shape (clocks, 4, windows)."""
        # With the windows last, each tone of each clock is one run of memory.
        tones = np.ascontiguousarray(spectra.T).take(self._bins, axis=0)
        shape = (len(self._grid.clocks), KNOWN_GROUPS, NIBBLES, len(spectra))
        sums = tones.reshape(shape[0], 1, NIBBLES, TONES, -1).sum(axis=3) + _SMALLEST
        shares = np.minimum(tones.take(self._known, axis=0).reshape(shape) / sums, _SHARE_MAX)
        scores: Scores = -(TONES - 1) * np.log(1 - shares).sum(axis=2)
        return scores

    def _find_peaks(self) -> list[Candidate]:
        """Return each maximum that no window within half a group exceeds."""
        count = self._scores.shape[2] - _PREFIX_HOPS - 2 * APART
        if count <= 0:
            return []
        length = count + 2 * APART
        total = self._scores[:, 0, :length].copy()
        for group in range(1, KNOWN_GROUPS):
            total += self._scores[:, group, group * HOPS_PER_GROUP :][:, :length]
        best = total.max(axis=0)
        candidates = [
            Candidate(
                self._grid.protocol,
                float((self._gone + window) * self._grid.hop),
                float(self._grid.clocks[total[:, window].argmax()]),
                float(best[window]),
            )
            for window in find_peaks(best, _SCORE_MIN)
        ]
        self.completed = total[:, :count]
        self._scores, self._gone = self._scores[:, :, count:], self._gone + count
        return candidates


def find_peaks(scores: NDArray[np.floating[Any]], least: float) -> list[int]:
    """Return the places of at least `least` that none within half a group exceeds, except for that half at each end."""
    around = np.lib.stride_tricks.sliding_window_view(scores, 2 * APART + 1).max(axis=1)
    middle = scores[APART : len(scores) - APART]
    places: list[int] = (np.flatnonzero((middle >= least) & (middle == around)) + APART).tolist()
    return places
