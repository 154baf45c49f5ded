"""Where a frame that repeats with a stated period may begin: by the scores of its repetitions together.

Each of them may be too weak to be a candidate by itself.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing.baseband import BAND_RATE_HZ
from soundmark_sdk.hearing.frame_code import KNOWN_NIBBLES
from soundmark_sdk.hearing.prefix_search import APART, Candidate, Scores, find_peaks
from soundmark_sdk.hearing.tone_grid import ToneGrid

PERIOD_MIN_S: Final = 1.0
PERIOD_MAX_S: Final = 60.0
# How many repetitions are added up, if they fit into what is kept.
_COUNTS: Final = (2, 4, 8)
_KEPT_S: Final = 60.0
# Pure chance scores 24 in each repetition. The sum's deviation grows with the root of their number.
_SCORE_MEAN: Final = float(KNOWN_NIBBLES.size)
_SCORE_OVER: Final = 22.0


def list_counts(period_s: float) -> tuple[int, ...]:
    """Return how many repetitions are added up for a period."""
    return tuple(count for count in _COUNTS if (count - 1) * period_s <= _KEPT_S or count == _COUNTS[0])


class RepetitionSearch:
    """A search among the scores of one protocol, in which repetitions are as far apart as the sender's clock says."""

    def __init__(self, grid: ToneGrid, period_s: float) -> None:
        self._grid: Final = grid
        self._counts: Final = list_counts(period_s)
        self._clock_rows: Final = np.arange(len(grid.clocks))[:, None]
        periods = period_s * BAND_RATE_HZ / (1 + grid.clocks) / grid.hop
        # In windows, of each repetition and clock.
        self._shifts: Final = np.rint(np.arange(self._counts[-1])[:, None] * periods).astype(np.intp)
        self._scores: Scores = np.zeros((len(grid.clocks), 0), np.float32)
        self._gone: int = 0
        # The best score and its clock in the last windows, for each number of repetitions.
        self._best: Final = {count: np.zeros(2 * APART) for count in self._counts}
        self._best_clocks: Final = {count: np.zeros(2 * APART, np.intp) for count in self._counts}

    def feed(self, scores: Scores) -> list[Candidate]:
        """Return the candidates that these scores complete, which have the shape (clocks, windows)."""
        if not scores.shape[1]:
            return []
        self._scores = np.concatenate([self._scores, scores], axis=1)
        found = list(self._find(np.arange(scores.shape[1]) + self._scores.shape[1] - scores.shape[1]))
        surplus = max(0, self._scores.shape[1] - int(self._shifts.max()))
        self._scores, self._gone = self._scores[:, surplus:], self._gone + surplus
        return found

    def _find(self, windows: NDArray[np.intp]) -> Iterator[Candidate]:
        total = np.zeros((len(self._grid.clocks), len(windows)))
        for number, shifts in enumerate(self._shifts):
            places = windows - shifts[:, None]
            # Before the stream there is nothing to add.
            total += np.where(places >= 0, self._scores[self._clock_rows, np.maximum(places, 0)], 0)
            if number + 1 in self._counts:
                yield from self._find_peaks(number + 1, total, int(windows[0]) + self._gone - 2 * APART)

    def _find_peaks(self, count: int, total: NDArray[np.float64], first: int) -> Iterator[Candidate]:
        best = np.concatenate([self._best[count], total.max(axis=0)])
        clocks = np.concatenate([self._best_clocks[count], total.argmax(axis=0)])
        for window in find_peaks(best, count * _SCORE_MEAN + np.sqrt(count) * _SCORE_OVER):
            start = float((first + window) * self._grid.hop)
            clock = float(self._grid.clocks[clocks[window]])
            yield Candidate(self._grid.protocol, start, clock, float(best[window]) / count, count)
        self._best[count], self._best_clocks[count] = best[-2 * APART :], clocks[-2 * APART :]
