"""How likely each half byte is, given the powers of the tones."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing.frame_code import (
    FIRST_UNKNOWN_NIBBLE,
    KNOWN_GROUPS,
    KNOWN_NIBBLES,
    LETTERS,
    NIBBLES,
    TOKEN_BYTES,
    TONES,
    UNKNOWN_BYTES,
)
from soundmark_sdk.hearing.ordered_statistics import IMPOSSIBLE_BITS, Bits
from soundmark_sdk.hearing.tone_grid import Powers, ToneGrid

# The share of half bytes that something unknown decides, such as a gap: without it, one confident error hides a frame.
_OUTLIERS: Final = 0.04
# How likely it is, against each tone, that a group holds no tone at all, as in a dropout.
_NOTHING: Final = 0.05
# The shares of tones that have the strength of their part of the band, and that fade from it. The others may be as
# strong as the strongest part.
_STEADY: Final = 0.6
_FADING: Final = 0.3
# How likely it is that a tone is somebody else's, and how strong that is against the strongest part: all are as likely.
_FOREIGN: Final = 0.01
_FOREIGN_STRENGTHS: Final = tuple(2 * 8.0**-number for number in range(8))
# A priori, the share of bands of which nothing arrives.
_DEAD_BANDS: Final = 0.1
# A tone of somebody else that sounds all the time: the third lowest of 13 groups, of which noise has a quarter of its
# mean there, is that much stronger than the noise. Letters have few upper halves, so a tone of ours may be frequent.
_STEADY_RANK: Final = 2
_STEADY_SHARE: Final = 0.25
_STEADY_MIN: Final = 6.0
_ROUNDS: Final = 5
_PARTS: Final = 12  # Of the band, each with a strength of its own: a filter may cut some off.
_SMALLEST: Final = 1e-20
_LOG_MAX: Final = 200.0

# Abramowitz and Stegun, 9.8.1 and 9.8.2: the Bessel function I0 below and above the seam.
_SEAM: Final = 3.75
_BELOW_SEAM: Final = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_ABOVE_SEAM: Final = (
    *(0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281),
    *(-0.02057706, 0.02635537, -0.01647633, 0.00392377),
)

_PART: Final = np.arange(NIBBLES * TONES).reshape(NIBBLES, TONES) * _PARTS // (NIBBLES * TONES)
_IN_PART: Final = (np.arange(_PARTS)[:, None, None] == _PART[None]).reshape(_PARTS, -1).astype(np.float64)
_VALUES: Final = np.arange(256)
_KNOWN: Final = np.zeros((KNOWN_GROUPS, NIBBLES, TONES))
_KNOWN[np.arange(KNOWN_GROUPS)[:, None], np.arange(NIBBLES), KNOWN_NIBBLES] = 1.0


def find_likelihoods(tones: Powers, between: Powers, grid: ToneGrid) -> NDArray[np.float64]:
    """Return the likelihood of each half byte over their mean, of shape (groups, nibbles, 16).

    `tones` and `between` have the shape (groups, 96).
    """
    power, background = _find_background(tones, between, grid)
    background = background + _find_steady_tones(power, background)
    # The known half bytes alone tell the strengths first.
    known = slice(KNOWN_GROUPS)
    result = _weigh(power, background, _find_strengths(power[known], background[known], _KNOWN))
    for _ in range(_ROUNDS - 1):
        chance = result / result.sum(axis=2, keepdims=True)
        chance[known] = _KNOWN
        result = _weigh(power, background, _find_strengths(power, background, chance))
    return _doubt_bands(result)


def find_known_bits(tones: Powers, between: Powers, grid: ToneGrid) -> float:
    """Return the evidence, in bits, that a frame begins with these four groups."""
    power, background = _find_background(tones, between, grid)
    likelihoods = _weigh(power, background, _find_strengths(power, background, _KNOWN))
    return float(np.log2(np.take_along_axis(likelihoods, KNOWN_NIBBLES[:, :, None], 2)).sum())


def _find_background(tones: Powers, between: Powers, grid: ToneGrid) -> tuple[Powers, Powers]:
    """Return the powers of the tones and what each has without being sent, of shape (groups, nibbles, 16)."""
    shape = (-1, NIBBLES, TONES)
    power = tones.reshape(shape)
    # Noise has an exponential distribution: its median is ln 2 of its mean. The tone that was sent reaches at most two
    # of the sixteen places between, which the median leaves out.
    noise = np.median(between.reshape(shape), axis=2, keepdims=True) / math.log(2) + _SMALLEST
    return power, noise + (tones @ grid.leakage).reshape(shape) + _find_echoes(power, noise)


def _weigh(power: Powers, background: Powers, strength: NDArray[np.float64]) -> Powers:
    """Return the likelihood of each half byte over their mean, given the strength of each part of the band."""
    likelihood = _compare(power / background, strength[_PART] / background, strength.max() / background) + _NOTHING
    weighed: Powers = (1 - _OUTLIERS) * likelihood / likelihood.mean(axis=2, keepdims=True) + _OUTLIERS
    return weighed


def _doubt_bands(likelihoods: Powers) -> Powers:
    """Believe a band as far as its known half bytes were heard: a filter may cut off everything that was sent there."""
    known = np.log(np.take_along_axis(likelihoods[:KNOWN_GROUPS], KNOWN_NIBBLES[:, :, None], 2))[:, :, 0].sum(axis=0)
    doubt = _DEAD_BANDS / (_DEAD_BANDS + (1 - _DEAD_BANDS) * np.exp(np.clip(known, -50, 50)))
    believed: Powers = likelihoods + doubt[:, None] * (1 - likelihoods)
    return believed


def _find_steady_tones(power: Powers, background: Powers) -> Powers:
    """Return what sounds in nearly every group at the same place: no frame does that."""
    usual = np.partition(power, _STEADY_RANK, axis=0)[_STEADY_RANK] / _STEADY_SHARE
    return np.where(usual > _STEADY_MIN * background, usual, 0.0)


def _find_echoes(power: Powers, noise: Powers) -> Powers:
    """Return what the tones of the group before are expected to leave: measured where both groups are known."""
    excess = np.maximum(power - noise, 0)
    before, after = excess[: KNOWN_GROUPS - 1], excess[1:KNOWN_GROUPS]
    of_before = (_KNOWN[:-1] * (1 - _KNOWN[1:])) > 0
    share = min(1.0, float(after[of_before].sum()) / max(float(before[of_before].sum()), _SMALLEST))
    echoes = np.zeros_like(power)
    echoes[1:] = share * excess[:-1]
    return echoes


def _find_strengths(power: Powers, background: Powers, chance: Powers) -> NDArray[np.float64]:
    """Return the mean power of a sent tone in each part of the band."""
    weights = chance.reshape(len(chance), -1) @ _IN_PART.T
    excess = (chance * (power - background)).reshape(len(chance), -1) @ _IN_PART.T
    strengths: NDArray[np.float64] = np.maximum(excess.sum(axis=0) / np.maximum(weights.sum(axis=0), _SMALLEST), 0)
    return strengths


def _compare(ratio: Powers, strength: Powers, strongest: Powers) -> Powers:
    """Return how much likelier a power is with a tone of this strength than without; all are over the background."""
    root = 2 * np.sqrt(strength * ratio)
    # All over the likelihood of noise alone, as logarithms: these numbers are beyond what a float holds.
    steady = root - strength + np.log(_STEADY * _scaled_bessel(root))
    fading = _compare_fading(ratio, strength) + math.log(_FADING)
    # A part of the band in which few tones were sent may be stronger than it seems.
    unlike = _compare_fading(ratio, strongest) + math.log(1 - _STEADY - _FADING)
    largest = np.maximum(np.maximum(steady, fading), unlike)
    sent = largest + np.log(np.exp(steady - largest) + np.exp(fading - largest) + np.exp(unlike - largest))
    result: Powers = np.exp(np.clip(sent - _compare_foreign(ratio, strongest), -_LOG_MAX, _LOG_MAX))
    return result


def _compare_fading(ratio: Powers, strength: Powers) -> Powers:
    result: Powers = ratio * strength / (1 + strength) - np.log1p(strength)
    return result


def _compare_foreign(ratio: Powers, strongest: Powers) -> Powers:
    """Return the logarithm for somebody else's tone, or the trace of one of ours: it limits what one tone can say.

    The first of the strengths has the largest exponent, which is taken out of the sum.
    """
    rests = [1 / (1 + strength * strongest) for strength in _FOREIGN_STRENGTHS]
    total = rests[0]
    for rest in rests[1:]:
        total = total + rest * np.exp(ratio * (rests[0] - rest))
    exponent = ratio * (1 - rests[0])
    result: Powers = exponent + np.log(_FOREIGN / len(rests) * total + (1 - _FOREIGN) * np.exp(-exponent))
    return result


def _scaled_bessel(x: Powers) -> Powers:
    """Return exp(-x) I0(x) within 2e-7."""
    small, large = np.minimum(x, _SEAM), np.maximum(x, _SEAM)
    low = _evaluate(np.square(small / _SEAM), _BELOW_SEAM) * np.exp(-small)
    high = _evaluate(_SEAM / large, _ABOVE_SEAM) / np.sqrt(large)
    return np.where(x < _SEAM, low, high)


def _evaluate(x: Powers, coefficients: tuple[float, ...]) -> Powers:
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result *= x
        result += coefficient
    return result


def find_evidence(likelihoods: NDArray[np.float64]) -> tuple[Bits, float]:
    """Return the bits for each value of each unknown byte, of shape (26, 256), and those for what is known.

    Values that no token has are as good as impossible. The mean likelihood of those that may be is 1.
    """
    bits = np.log2(likelihoods).reshape(-1, TONES)
    known = float(bits[:FIRST_UNKNOWN_NIBBLE][_KNOWN.reshape(-1, TONES) > 0].sum() + bits[-2:, 0].sum())
    unknown = bits[FIRST_UNKNOWN_NIBBLE : FIRST_UNKNOWN_NIBBLE + 2 * UNKNOWN_BYTES]
    evidence = unknown[::2, _VALUES & 15] + unknown[1::2, _VALUES >> 4]
    return normalise(evidence), known


def normalise(evidence: Bits) -> Bits:
    """Return evidence whose likelihoods have a mean of 1 over the values that may be."""
    scaled = np.full_like(evidence, IMPOSSIBLE_BITS)
    letters = evidence[:TOKEN_BYTES, LETTERS]
    scaled[:TOKEN_BYTES, LETTERS] = letters - np.log2(np.exp2(letters).mean(axis=1, keepdims=True))
    checks = evidence[TOKEN_BYTES:]
    scaled[TOKEN_BYTES:] = checks - np.log2(np.exp2(checks).mean(axis=1, keepdims=True))
    return np.maximum(scaled, IMPOSSIBLE_BITS)
