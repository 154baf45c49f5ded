"""Where exactly a frame begins and how fast it is, found from the tones that every frame has in common."""

from typing import Final

import numpy as np

from soundmark_sdk.hearing.baseband import Band
from soundmark_sdk.hearing.frame_code import KNOWN_GROUPS, KNOWN_NIBBLES, NIBBLES, TONES
from soundmark_sdk.hearing.prefix_search import Candidate
from soundmark_sdk.hearing.tone_grid import ToneGrid, find_spectra

_OFFSETS: Final = np.arange(-2, 3) / 48  # Of a group: the search's steps are 1/12.
_CLOCK_STEPS: Final = np.arange(-5, 6) / 5  # Of the search's.
_OVERSAMPLING: Final = 8
_SMALLEST: Final = 1e-30


def align(candidate: Candidate, band: Band, first: int, grid: ToneGrid) -> tuple[float, float]:
    """Return the start and clock at which the known tones hold the largest share of the power in their bands.

    `first` is the place of the first sample of the band.
    """
    size = _OVERSAMPLING * grid.group
    starts = candidate.start + _OFFSETS * grid.group
    clocks = candidate.clock + _CLOCK_STEPS * grid.clock_step
    windows = np.stack([grid.cut(band, start - first, candidate.clock, KNOWN_GROUPS) for start in starts])
    tones = find_spectra(windows * grid.window, size)[:, :, grid.find_bins(clocks[:, None], size)]
    bands = tones.reshape(len(starts), KNOWN_GROUPS, len(clocks), NIBBLES, TONES)
    known = np.take_along_axis(bands, KNOWN_NIBBLES[None, :, None, :, None], axis=4)[..., 0]
    shares = (known / (bands.sum(axis=4) + _SMALLEST)).sum(axis=(1, 3))
    best_start, best_clock = np.unravel_index(shares.argmax(), shares.shape)
    return float(starts[best_start]), float(clocks[best_clock])
