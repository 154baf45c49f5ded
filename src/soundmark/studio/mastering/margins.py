"""How far a Code is from being lost, and how well a station may rely on it.

The margin is by how many decibels the signal-to-noise ratio of every tone could fall before a receiver no longer learns
enough from all of them together. It is predicted from the tones, and verified with the receiver itself: docs/adr/0046.
"""

from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from soundmark_sdk import Listener
from soundmark_sdk.resampling import RATE_HZ

from soundmark.studio.mastering.frame_tones import FIRST_BIN, TONE_HZ, FrameTones, Powers, ReceivedTones, Samples

Grade: TypeAlias = Literal["good", "fair", "weak", "lost"]

# Any sixteen of the 26 bytes that a receiver does not know before determine the frame.
_NEEDED_BITS: Final = 128.0
_BITS_OF_TONE: Final = 4.0
# What it knows before must tell it where the frame begins.
_KNOWN_BITS: Final = 24.0
# The ratio of a tone at which a receiver hears 95 of 100 of our frames in white noise. With it, of 331 frames of all
# protocols (November 2026), all 112 with a margin of 0 dB or more were heard, 27 of the 36 with up to 0.5 dB less, 14
# of the next 27, and 3 of the 156 below -1 dB.
_KNEE: Final = 3.9
# In white noise all 52 tones are alike: 208 bits, of which a receiver learns 128 at the knee.
_RATIO_OF_TONE: Final = _KNEE / 0.955
MARGIN_MAX_DB: Final = 100.0
GOOD_DB: Final = 6.0
FAIR_DB: Final = 3.0
_STEPS: Final = 16  # Halvings of 200 dB, to 0.003 dB.
_VERIFIED_LESS_DB: Final = 1.0
_VERIFIED_STEP_DB: Final = 2.0
_PIECE: Final = RATE_HZ // 4  # A receiver is asked after each.
_NOISE_DB: Final = (-140.0, 40.0)  # Between these is every noise that is searched for.
# Where an encoder cuts, tones are far below the others.
_CUT_OFF: Final = 0.02
_TONES_TOGETHER: Final = 8


def predict_margin(ratios: Powers, tells: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the margin for the ratios of one frame, of shape (…, 13, 6); -100 if no level would help."""
    low = np.full(ratios.shape[:-2], -MARGIN_MAX_DB)
    high = np.full(ratios.shape[:-2], MARGIN_MAX_DB)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        falling = ratios * 10 ** (-middle[..., None, None] / 10)
        bits = _BITS_OF_TONE * (1 - np.exp(-falling / _RATIO_OF_TONE))
        is_enough = bits[..., tells].sum(axis=-1) >= _NEEDED_BITS
        is_enough &= bits[..., ~tells].sum(axis=-1) >= _KNOWN_BITS
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle)
    margins: NDArray[np.float64] = np.round((low + high) / 2, 1)
    return margins


def verify_margin(sound: Samples, received: ReceivedTones, tones: FrameTones, chance: Generator) -> tuple[float, bool]:
    """Return the margin that a receiver confirms, at most the predicted one, and whether it hears the frame at all.

    `sound` is mono, at 48 kHz, with the frame and a little more on either side. White noise is added that leaves a
    margin of one decibel. If the receiver then hears nothing, the margin is less, and is tried again.
    """
    predicted = float(predict_margin(received.ratios, tones.tells))
    if not hears(sound, tones.frame):
        return min(predicted, 0.0), False
    margin = predicted
    while margin > _VERIFIED_LESS_DB:
        power = _find_noise(received, tones, margin - _VERIFIED_LESS_DB)
        noisy = sound + chance.standard_normal(len(sound)) * np.sqrt(power)
        if hears(noisy, tones.frame):
            return margin, True
        margin = round(margin - _VERIFIED_STEP_DB, 1)
    return max(margin, 0.0), True


def hears(sound: Samples, frame: str) -> bool:
    """Return whether the SDK's receiver hears a frame in a mono sound at 48 kHz."""
    loudest = max(1.0, float(np.abs(sound).max(initial=0.0)))
    samples = (sound / loudest).astype(np.float32)
    pieces = (samples[at : at + _PIECE] for at in range(0, len(samples), _PIECE))
    with Listener(RATE_HZ) as listener:
        # Once it is heard, what else may begin inside it would take three times as long.
        is_heard = any(heard.text == frame for piece in pieces for heard in listener.feed(piece))
        return is_heard or any(heard.text == frame for heard in listener.finish())


def find_cutoff(received: ReceivedTones, tones: FrameTones) -> int | None:
    """Return the frequency in Hz above which an encoder left nothing of the frame; None if it left all."""
    left = np.maximum(received.powers - received.others, 0.0) / tones.powers
    parts = [left[(tones.tones // _TONES_TOGETHER) == part] for part in range(FIRST_BIN // _TONES_TOGETHER)]
    levels = [float(np.median(part)) if len(part) else None for part in parts]
    known = [level for level in levels if level is not None]
    cutoff = None
    for part, level in reversed(list(enumerate(levels))):
        if level is not None and level >= _CUT_OFF * max(known):
            break
        if level is not None:
            cutoff = round((FIRST_BIN + part * _TONES_TOGETHER) * TONE_HZ)
    return cutoff


def grade(margin_db: float, *, is_heard: bool) -> Grade:
    """Return the word for a margin."""
    if not is_heard:
        return "lost"
    return "good" if margin_db >= GOOD_DB else "fair" if margin_db >= FAIR_DB else "weak"


def _find_noise(received: ReceivedTones, tones: FrameTones, margin_db: float) -> float:
    """Return the power of white noise that takes this much of the margin.

    It is the same in all tones, so it takes more where there was least.
    """
    signal = np.maximum(received.powers - received.others, 0.0)
    # A sample of noise of power 1 has this power in a tone of a group.
    unit = float(tones.group)
    low, high = _NOISE_DB
    target = float(predict_margin(received.ratios, tones.tells)) - margin_db
    for _ in range(_STEPS):
        middle = (low + high) / 2
        ratios = signal / (received.others + unit * 10 ** (middle / 10))
        is_above = float(predict_margin(ratios, tones.tells)) > target
        low, high = (middle, high) if is_above else (low, middle)
    return float(10 ** (low / 10))
