"""The tones of a frame, and how strong each is in a sound, beside what else sounds there.

A frame has 13 groups of six tones, one in each sixth of the band. A tone repeats after a block, so the blocks of a
group add up in phase, while what else sounds does not.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from soundmark_sdk.resampling import RATE_HZ

from soundmark.audio.synthesis import synthesise
from soundmark.wire.private.audio import Protocol

Samples = NDArray[np.float64]
Powers = NDArray[np.float64]

BLOCK: Final = 1024
GROUPS: Final = 13
SIXTHS: Final = 6
TONES_IN_SIXTH: Final = 16
FIRST_BIN: Final = 320  # Of the spectrum of a block: 15 kHz.
TONES: Final = SIXTHS * TONES_IN_SIXTH
TONE_HZ: Final = RATE_HZ / BLOCK
_MARKER: Final = 16 * BLOCK  # Samples, at either end.
_KNOWN_BYTES: Final = 12  # The length with its checks, and what every frame begins with.
_BYTES: Final = 38  # And one that is always 0.
_LEAST_PART: Final = 0.01  # Of what was measured, after the leaks were taken away.
_LEAST_POWER: Final = 1e-18  # Of digital silence, so that nothing is divided by zero.


@dataclass(frozen=True, slots=True, eq=False)
class FrameTones:
    """A frame as it is played: `length` samples at 48 kHz, the tone of each group and sixth, and its power in them.

    `leaks` is the mean power that its own fades leave in the other tones. `tells` says which tones carry
    what a receiver does not know before. All have the shape (13, 6).
    """

    frame: str
    protocol: Protocol
    length: int
    tones: NDArray[np.intp]
    powers: Powers
    leaks: Powers
    tells: NDArray[np.bool_]

    @property
    def group(self) -> int:
        """The samples of a group."""
        return (self.length - 2 * _MARKER) // GROUPS

    def render(self) -> Samples:
        """Return the samples. They are not kept: a master may have hundreds of frames."""
        return synthesise(self.frame, self.protocol).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ReceivedTones:
    """What a sound has of a frame: for each group and sixth, the power of its tone and that of the other tones there.

    `others` is the mean of the other fifteen, all that sounds in the same place and is not the frame. Shape (13, 6).
    """

    powers: Powers
    others: Powers

    @property
    def ratios(self) -> Powers:
        """The signal-to-noise ratio of each tone."""
        return np.maximum(self.powers / self.others - 1, 0.0)


def make_frame_tones(frame: str, protocol: Protocol) -> FrameTones:
    """Return the tones of a frame.

    Raises: ValueError for a text that is not a frame.
    """
    samples = synthesise(frame, protocol).astype(np.float64)
    powers = _measure(samples)
    tones = powers.reshape(GROUPS, SIXTHS, TONES_IN_SIXTH).argmax(axis=2) + TONES_IN_SIXTH * np.arange(SIXTHS)
    own, leaks = _divide(powers, tones)
    of_byte = np.arange(GROUPS * SIXTHS // 2)
    tells = np.repeat((of_byte >= _KNOWN_BYTES) & (of_byte < _BYTES), 2).reshape(GROUPS, SIXTHS)
    return FrameTones(frame, protocol, len(samples), tones, own, leaks, tells)


def receive(samples: Samples, tones: FrameTones) -> ReceivedTones:
    """Measure a sound at 48 kHz that begins and ends with the frame."""
    own, others = _divide(_measure(samples), tones.tones)
    of_programme = np.maximum(others - tones.leaks * own / tones.powers, _LEAST_PART * others)
    return ReceivedTones(own, np.maximum(of_programme, _LEAST_POWER))


def _divide(powers: Powers, tones: NDArray[np.intp]) -> tuple[Powers, Powers]:
    """Return the power of each tone, and the mean power of the others in its sixth."""
    own: Powers = np.take_along_axis(powers, tones, axis=1)
    sums = powers.reshape(GROUPS, SIXTHS, TONES_IN_SIXTH).sum(axis=2)
    return own, (sums - own) / (TONES_IN_SIXTH - 1)


def _measure(samples: Samples) -> Powers:
    """Return the power of each tone in each group, of shape (13, 96)."""
    inner = samples[_MARKER : len(samples) - _MARKER].reshape(GROUPS, -1, BLOCK)
    lines = np.fft.rfft(inner, axis=2)[:, :, FIRST_BIN : FIRST_BIN + TONES].sum(axis=1)
    powers: Powers = np.square(np.abs(lines))
    return powers


def measure_blocks(samples: Samples) -> Powers:
    """Return the mean power of a tone in each sixth of each block of a sound at 48 kHz, of shape (blocks, 6)."""
    blocks = samples[: len(samples) // BLOCK * BLOCK].reshape(-1, BLOCK)
    lines = np.fft.rfft(blocks, axis=1)[:, FIRST_BIN : FIRST_BIN + TONES]
    powers: Powers = np.square(np.abs(lines)).reshape(len(blocks), SIXTHS, TONES_IN_SIXTH).mean(axis=2)
    return powers


def expect_others(blocks: Powers, tones: FrameTones) -> Powers:
    """Return `ReceivedTones.others` for a frame that begins at each block, of shape (places, 13, 6).

    What sounds there adds up without regard to phase, so over a group its power is the sum of those of its blocks.
    """
    length = tones.group // BLOCK
    sums = np.concatenate([np.zeros((1, SIXTHS)), np.cumsum(blocks, axis=0)])
    places = len(blocks) - tones.length // BLOCK + 1
    starts = np.arange(max(places, 0))[:, None] + _MARKER // BLOCK + length * np.arange(GROUPS)
    others: Powers = np.maximum(sums[starts + length] - sums[starts], _LEAST_POWER)
    return others
