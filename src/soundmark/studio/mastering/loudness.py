"""Integrated loudness and true peak of a stream: EBU R 128, ITU-R BS.1770-5.

The two filters of the K-weighting are applied as one impulse response by fast convolution, because NumPy has no
recursive filter. What is cut off of that response is 140 dB below it.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import soxr
from numpy.typing import NDArray

Block = NDArray[np.float64]

# BS.1770-5, annex 1: a loudspeaker behind the listener counts 1.5 dB more, and the one for effects not at all.
_REAR_WEIGHT: Final = 1.41
_ABSOLUTE_GATE_LUFS: Final = -70.0
_RELATIVE_GATE_LU: Final = -10.0
_OFFSET_LUFS: Final = -0.691
_STEP_S: Final = 0.1  # Four of these are a gating block, which begins every 100 ms.
_STEPS_IN_BLOCK: Final = 4
_RESPONSE_S: Final = 0.1
_OVERSAMPLING: Final = 4


class LoudnessMeter:
    """A meter of a stream of samples of shape (samples, channels), in -1..1. Its memory grows by 10 floats a second."""

    def __init__(self, sample_rate: int, weights: Sequence[float]) -> None:
        """Take the weight of each channel, from `weigh_channels`."""
        self._weights: Final = np.array(weights)
        self._response: Final = _k_weighting(sample_rate)
        self._size: Final = 1 << (4 * len(self._response) - 1).bit_length()
        self._spectrum: Final = np.fft.rfft(self._response, self._size)
        self._history: Block = np.zeros((len(self._response) - 1, len(weights)))
        self._step: Final = round(sample_rate * _STEP_S)
        self._pending: Block = np.zeros((0, len(weights)))
        self._powers: Final[list[float]] = []

    def feed(self, samples: Block) -> None:
        """Measure more samples, any number at a time."""
        overlap = len(self._history)
        usable = self._size - overlap
        for first in range(0, len(samples), usable):
            joined = np.concatenate([self._history, samples[first : first + usable]])
            self._history = joined[-overlap:]
            filtered = np.fft.irfft(np.fft.rfft(joined, self._size, axis=0) * self._spectrum[:, None], axis=0)
            self._sum_up(filtered[overlap : len(joined)])

    def _sum_up(self, filtered: Block) -> None:
        joined = np.concatenate([self._pending, filtered])
        whole = len(joined) // self._step
        steps = joined[: whole * self._step].reshape(whole, self._step, joined.shape[1])
        self._powers.extend(np.mean(np.square(steps), axis=1) @ self._weights)
        self._pending = joined[whole * self._step :]

    def integrated_lufs(self) -> float | None:
        """Return the loudness so far; None if nothing is above the absolute gate of -70 LUFS."""
        powers = np.array(self._powers)
        if len(powers) < _STEPS_IN_BLOCK:
            return None
        blocks = np.convolve(powers, np.full(_STEPS_IN_BLOCK, 1 / _STEPS_IN_BLOCK), "valid")
        loud = blocks[blocks > _power_of(_ABSOLUTE_GATE_LUFS)]
        if not len(loud):
            return None
        gate = np.mean(loud) * 10 ** (_RELATIVE_GATE_LU / 10)
        return float(_OFFSET_LUFS + 10 * np.log10(np.mean(loud[loud > gate])))


class PeakMeter:
    """A meter of the true peak of a stream of samples of shape (samples, channels): four times oversampled."""

    def __init__(self, sample_rate: int, channel_count: int) -> None:
        self._stream: Final = soxr.ResampleStream(
            sample_rate, _OVERSAMPLING * sample_rate, channel_count, dtype="float32", quality="HQ"
        )
        self._peak = 0.0

    def feed(self, samples: Block, *, last: bool = False) -> None:
        """Measure more samples; with `last`, also what the filter still holds."""
        between = self._stream.resample_chunk(samples.astype(np.float32), last=last)
        largest = max((float(np.abs(each).max(initial=0.0)) for each in (samples, between)), default=0.0)
        self._peak = max(self._peak, largest)

    def peak_dbtp(self) -> float | None:
        """Return the true peak so far in dB below full scale; None for digital silence."""
        return None if not self._peak else float(20 * np.log10(self._peak))


def weigh_channels(channel_count: int, speakers: Sequence[int] | None) -> list[float]:
    """Return the weight of each channel in the loudness.

    `speakers` are the bits of a WAV file's channel mask, in the order of the channels; None if the file does not say.
    Five channels or more are then taken to be left, right, centre, effects (from six on), and behind the listener.
    """
    if speakers is None or len(speakers) < channel_count:
        speakers = _DEFAULT_SPEAKERS[channel_count] if channel_count in _DEFAULT_SPEAKERS else (0,) * channel_count
    return [0.0 if bit == _EFFECTS else _REAR_WEIGHT if bit in _REAR else 1.0 for bit in speakers[:channel_count]]


_EFFECTS: Final = 3
_REAR: Final = frozenset({4, 5, 9, 10})
_DEFAULT_SPEAKERS: Final = {5: (0, 1, 2, 4, 5), 6: (0, 1, 2, 3, 4, 5)}


def _power_of(loudness_lufs: float) -> float:
    return float(10 ** ((loudness_lufs - _OFFSET_LUFS) / 10))


def _k_weighting(sample_rate: int) -> Block:
    """Return the impulse response of both filters, whose poles and zeros are those of 48 kHz at any rate."""
    impulse = np.zeros(round(sample_rate * _RESPONSE_S))
    impulse[0] = 1.0
    return _filter(_filter(impulse, *_shelf(sample_rate)), *_high_pass(sample_rate))


def _shelf(sample_rate: int) -> tuple[Block, Block]:
    """Return the head's shelf. Its analogue parameters give the coefficients of the recommendation at 48 kHz."""
    frequency_hz, gain_db, quality = 1681.974450955533, 3.999843853973347, 0.7071752369554196
    k = np.tan(np.pi * frequency_hz / sample_rate)
    high = 10 ** (gain_db / 20)
    band = high**0.4996667741545416
    norm = 1 + k / quality + k * k
    zeros = np.array([high + band * k / quality + k * k, 2 * (k * k - high), high - band * k / quality + k * k])
    return zeros / norm, np.array([1.0, 2 * (k * k - 1) / norm, (1 - k / quality + k * k) / norm])


def _high_pass(sample_rate: int) -> tuple[Block, Block]:
    frequency_hz, quality = 38.13547087602444, 0.5003270373238773
    k = np.tan(np.pi * frequency_hz / sample_rate)
    norm = 1 + k / quality + k * k
    return np.array([1.0, -2.0, 1.0]), np.array([1.0, 2 * (k * k - 1) / norm, (1 - k / quality + k * k) / norm])


def _filter(samples: Block, zeros: Block, poles: Block) -> Block:
    """Apply a recursive filter of second order, for some thousand samples only: each costs a microsecond."""
    output = np.zeros_like(samples)
    x1 = x2 = y1 = y2 = 0.0
    for index, x0 in enumerate(samples):
        y0 = zeros[0] * x0 + zeros[1] * x1 + zeros[2] * x2 - poles[1] * y1 - poles[2] * y2
        output[index] = y0
        x1, x2, y1, y2 = x0, x1, y0, y1
    return output
