"""Where exactly a frame begins and how fast it is, found from its tones."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing.baseband import Band
from soundmark_sdk.hearing.frame_code import GROUPS, KNOWN_GROUPS, KNOWN_NIBBLES, NIBBLES, TONES
from soundmark_sdk.hearing.tone_grid import ToneGrid, find_spectra

_OFFSETS: Final = np.arange(-2, 3) / 48  # Of a group: the search's steps are 1/12.
_CLOCK_STEPS: Final = np.arange(-5, 6) / 5  # Of the search's.
_OVERSAMPLING: Final = 8
_SMALLEST: Final = 1e-30
# How much a clock may change from one group to the next, in the search's steps: somebody begins to walk.
_CHANGES: Final = np.arange(-4, 5) / 2


def align(starts: Sequence[float], clock: float, band: Band, grid: ToneGrid) -> tuple[list[float], float]:
    """Return the starts and the clock at which the known tones hold the largest share of the power in their bands.

    The starts are those of one frame's copies. Each is aligned by itself, and the clock is the same for all.
    """
    size = _OVERSAMPLING * grid.group
    places = np.array(starts)[:, None] + _OFFSETS * grid.group
    clocks = clock + _CLOCK_STEPS * grid.clock_step
    windows = np.stack([grid.cut(band, start, clock, KNOWN_GROUPS) for start in places.ravel()])
    tones = find_spectra(windows * grid.window, size)[:, :, grid.find_bins(clocks[:, None], size)]
    bands = tones.reshape(*places.shape, KNOWN_GROUPS, len(clocks), NIBBLES, TONES)
    known = np.take_along_axis(bands, KNOWN_NIBBLES[None, None, :, None, :, None], axis=5)[..., 0]
    shares = (known / (bands.sum(axis=5) + _SMALLEST)).sum(axis=(2, 4))
    best_clock = int(shares.max(axis=1).sum(axis=0).argmax())
    best_places = shares[:, :, best_clock].argmax(axis=1)
    return [float(place[best]) for place, best in zip(places, best_places, strict=True)], float(clocks[best_clock])


def follow(start: float, clock: float, band: Band, grid: ToneGrid) -> NDArray[np.float64]:
    """Return the clock of each group of a frame whose clock changes, such as when its listener begins to walk.

    Of each group it is the one at which the strongest tone of each band holds most of the band's power.
    """
    size = _OVERSAMPLING * grid.group
    followed = np.zeros(GROUPS)
    for group in range(GROUPS):
        clocks = clock + _CHANGES * grid.clock_step
        window = grid.cut(band, start, 0.0, 1)
        tones = find_spectra(window * grid.window, size)[0][grid.find_bins(clocks[:, None], size)]
        bands = tones.reshape(len(clocks), NIBBLES, TONES)
        shares = bands.max(axis=2) / (bands.sum(axis=2) + _SMALLEST)
        if group < KNOWN_GROUPS:
            known = bands[:, np.arange(NIBBLES), KNOWN_NIBBLES[group]]
            shares = known / (bands.sum(axis=2) + _SMALLEST)
        followed[group] = clock = float(clocks[shares.sum(axis=1).argmax()])
        start += grid.group / (1 + clock)
    return followed
