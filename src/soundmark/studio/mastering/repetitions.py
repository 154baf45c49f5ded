"""One repetition of a Code in a programme: where it is, how strong, and how far from being lost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import soxr
from numpy.random import Generator
from soundmark_sdk.resampling import RATE_HZ

from soundmark.studio.mastering.frame_tones import FrameTones, Samples, receive
from soundmark.studio.mastering.margins import find_cutoff, verify_margin
from soundmark.studio.mastering.programme import Programme
from soundmark.wire.private.audio import Protocol

MARGIN_S: Final = 0.2  # Of the programme on either side of a frame, with which a receiver hears it.
_LEVEL_MAX_DB: Final = 120.0
_SILENCE: Final = 1e-12  # The power below which there is no programme to compare with.
# In parts of the Code's power: samples of 16 bits do not tell more exactly what is beside it.
_SILENCE_BESIDE: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Repetition:
    """A frame that begins at `at_s`. If it is not heard, `margin_db` is at most 0.

    `level_db` is its RMS against that of the programme beside it, None in silence; `cutoff_hz` is where an encoder cut
    it off, None if it did not.
    """

    at_s: float
    frame: str
    protocol: Protocol
    level_db: float | None
    margin_db: float
    is_heard: bool
    cutoff_hz: int | None


def measure_repetition(
    programme: Programme, start: int, channels: Sequence[int], tones: FrameTones, chance: Generator
) -> Repetition:
    """Measure a frame that begins at sample `start` of a programme, in the mean of these channels.

    Raises: NotReadable; OSError.
    """
    rate = programme.sample_rate
    before = min(start, round(MARGIN_S * rate))
    length = math.ceil(tones.length * rate / RATE_HZ)
    sides = programme.read(start - before, before + length + round(MARGIN_S * rate))[:, list(channels)]
    inner = sides[before : before + length]
    return measure_sound(
        convert(sides.mean(axis=1), rate),
        round(before * RATE_HZ / rate),
        start / rate,
        tones,
        float(np.mean(np.square(inner))) if inner.size else 0.0,
        chance,
    )


def measure_sound(
    sound: Samples, begins: int, at_s: float, tones: FrameTones, power: float, chance: Generator
) -> Repetition:
    """Measure a frame that begins at sample `begins` of a mono sound at 48 kHz; `power` is that of all sound there."""
    inner = sound[begins : begins + tones.length]
    received = receive(np.pad(inner, (0, tones.length - len(inner))), tones)
    own = float(np.median(np.maximum(received.powers - received.others, 0.0) / tones.powers))
    of_code = own * float(np.mean(np.square(tones.render())))
    rest = power - of_code
    level_db = None
    if rest > max(_SILENCE, _SILENCE_BESIDE * of_code) and of_code > _SILENCE:
        level_db = round(float(np.clip(10 * np.log10(of_code / rest), -_LEVEL_MAX_DB, _LEVEL_MAX_DB)), 1)
    margin_db, is_heard = verify_margin(sound, received, tones, chance)
    return Repetition(at_s, tones.frame, tones.protocol, level_db, margin_db, is_heard, find_cutoff(received, tones))


def convert(samples: Samples, rate: int, to_rate: int = RATE_HZ) -> Samples:
    """Return a sound, of one channel or of shape (samples, channels), at another rate."""
    if rate == to_rate:
        return samples
    converted: Samples = soxr.resample(samples, rate, to_rate, quality="VHQ")
    return converted


def choose_channels(channel_count: int, speakers: Sequence[int] | None) -> tuple[int, ...]:
    """Return the channels that carry the Code: the left and the right one in front, or the only one.

    A phone hears all loudspeakers together; in more of them the Code would only be louder. Without a channel mask, the
    first two are left and right.
    """
    if speakers is not None and {0, 1} <= set(speakers[:channel_count]):
        return speakers.index(0), speakers.index(1)
    return (0,) if channel_count == 1 else (0, 1)
