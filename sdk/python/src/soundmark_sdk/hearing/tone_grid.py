"""The tones of one protocol over time and clock: windows of one group, and where its tones are in their spectra."""

import math
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing.baseband import BAND_RATE_HZ, BLOCK, Band
from soundmark_sdk.hearing.frame_code import FIRST_TONE_HZ, GROUP_BLOCKS, GROUPS, NIBBLES, TONE_STEP_HZ, TONES

Powers: TypeAlias = NDArray[np.float64]
Clock: TypeAlias = float | NDArray[np.floating[Any]]

HOPS_PER_GROUP: Final = 12
TONE_COUNT: Final = NIBBLES * TONES
_CLOCK_MAX: Final = 0.0052  # A receiver's clock may be 0.5 % from the sender's.
_MIDDLE_HZ: Final = FIRST_TONE_HZ + TONE_STEP_HZ * TONE_COUNT / 2
_FADE: Final = 0.15  # Of a group, at each end: as it is sent.
_TONES_HZ: Final = FIRST_TONE_HZ + TONE_STEP_HZ * np.arange(TONE_COUNT)
_OVERSAMPLING: Final = 4  # Of the spectra from which tones are read.


class ToneGrid:
    """The windows and frequencies of one protocol. Lengths are in samples of the band."""

    def __init__(self, protocol: int) -> None:
        self.protocol: Final = protocol
        self.group: Final = GROUP_BLOCKS[protocol] * BLOCK
        self.hop: Final = self.group // HOPS_PER_GROUP
        self.frame: Final = GROUPS * self.group
        self.window: Final = _make_window(self.group)
        self.size: Final = 2 * self.group
        # Half a cell of the search's spectra.
        self.clock_step: Final = BAND_RATE_HZ / self.size / _MIDDLE_HZ
        count = math.ceil(_CLOCK_MAX / self.clock_step)
        self.clocks: Final = np.arange(-count, count + 1) * self.clock_step
        self.bins: Final = self.find_bins(self.clocks[:, None], self.size)
        self.leakage: Final = self._find_leakage()

    def find_bins(self, clock: Clock, size: int) -> NDArray[np.intp]:
        """Return the bins of the tones in a spectrum of `size`, for a sender's clock that is fast by `clock`."""
        return np.rint(_TONES_HZ * (1 + clock) * size / BAND_RATE_HZ).astype(np.intp) % size

    def cut(self, band: Band, start: float, clock: Clock, count: int) -> Band:
        """Return the windows of `count` groups of a frame whose data begins at `start`; what is not there is 0.

        A clock for each group moves the groups after it.
        """
        lengths = np.broadcast_to(self.group / (1 + np.asarray(clock)), (count,))
        starts = np.rint(start + np.cumsum(lengths) - lengths).astype(np.intp)
        places = starts[:, None] + np.arange(self.group)
        inside = (places >= 0) & (places < len(band))
        groups: Band = np.where(inside, band[np.clip(places, 0, max(0, len(band) - 1))], 0).astype(np.complex64)
        return groups

    def find_powers(self, groups: Band, clock: Clock) -> tuple[Powers, Powers]:
        """Return the powers of the tones and half-way between them, of shape (groups, 96), for windows of groups."""
        size = _OVERSAMPLING * self.group
        spectra = find_spectra(groups * self.window, size)
        clocks = np.broadcast_to(np.asarray(clock, np.float64), (len(groups),))[:, None]
        tones = self.find_bins(clocks, size)
        half_step = round(TONE_STEP_HZ / 2 * size / BAND_RATE_HZ)
        rows = np.arange(len(groups))[:, None]
        return spectra[rows, tones].astype(np.float64), spectra[rows, (tones + half_step) % size].astype(np.float64)

    def _find_leakage(self) -> Powers:
        """Return the share of a tone's power at another tone's place, of shape (96, 96), a quarter of a cell off."""
        fine = 64
        spectrum = np.square(np.abs(np.fft.fft(self.window, fine * self.group)))
        spectrum /= spectrum[0]
        step = TONE_STEP_HZ * self.group / BAND_RATE_HZ * fine
        shares = np.zeros(TONE_COUNT)
        for distance in range(1, TONE_COUNT):
            centre = distance * step
            around = spectrum[int(centre - fine / 4) : int(centre + fine / 4) + 1]
            shares[distance] = around.max(initial=0.0)
        leakage: Powers = shares[np.abs(np.arange(TONE_COUNT)[:, None] - np.arange(TONE_COUNT)[None, :])]
        return leakage


@cache
def grid_of(protocol: int) -> ToneGrid:
    """Return the grid of a protocol."""
    return ToneGrid(protocol)


def find_spectra(windows: Band, size: int) -> NDArray[np.float32]:
    """Return the power of each bin of a transform of `size`, along the last axis."""
    spectra = np.fft.fft(windows, size, axis=-1)
    powers: NDArray[np.float32] = (np.square(spectra.real) + np.square(spectra.imag)).astype(np.float32)
    return powers


def _make_window(size: int) -> NDArray[np.float32]:
    fade = int(_FADE * size)
    ramp = (np.arange(fade) + 0.5) / fade
    window = np.ones(size)
    window[:fade], window[-fade:] = ramp, ramp[::-1]
    scaled: NDArray[np.float32] = (window / np.sqrt(np.square(window).sum())).astype(np.float32)
    return scaled
