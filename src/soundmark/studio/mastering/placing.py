"""Where in a programme a Code is heard best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from soundmark_sdk.resampling import RATE_HZ

from soundmark.studio.mastering.frame_tones import BLOCK, FrameTones, Samples, expect_others, measure_blocks
from soundmark.studio.mastering.margins import predict_margin
from soundmark.studio.mastering.programme import Programme
from soundmark.studio.mastering.repetitions import convert

GAP_S: Final = 0.5  # Between two repetitions at least, so that a receiver tells them apart.
_PIECE_S: Final = 60.0


class NotPlaced(Exception):
    """A Code cannot be mixed; the message says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """The sample at which a repetition begins, and the margin that it has there at full level."""

    start: int
    margin_db: float


def find_best_place(
    programme: Programme, channels: Sequence[int], tones: FrameTones, from_s: float, to_s: float
) -> Place | None:
    """Return the place between two times that leaves the largest margin; None if the frame does not fit.

    Raises: NotReadable; OSError.
    """
    best: Place | None = None
    length_s = tones.length / RATE_HZ
    rate = programme.sample_rate
    at_s = from_s
    while at_s + length_s <= to_s:
        piece_s = min(_PIECE_S + length_s, to_s - at_s)
        first = round(at_s * rate)
        sides = programme.read(first, round(piece_s * rate))[:, list(channels)]
        margins = _predict_margins(convert(sides.mean(axis=1), rate), tones)
        if len(margins) and (best is None or margins.max() > best.margin_db):
            place = int(np.argmax(margins))
            best = Place(first + round(place * BLOCK * rate / RATE_HZ), float(margins[place]))
        at_s += _PIECE_S
    return best


def predict_at(programme: Programme, channels: Sequence[int], tones: FrameTones, start: int) -> Place:
    """Return the place that begins at a sample.

    Raises: NotPlaced if the frame does not fit there; NotReadable; OSError.
    """
    rate = programme.sample_rate
    count = -(-tones.length * rate // RATE_HZ)
    if start < 0 or start + count > programme.sample_count:
        raise NotPlaced(f"a Code of {tones.length / RATE_HZ:.1f} s does not fit at {start / rate:.1f} s")
    sides = programme.read(start, count + BLOCK)[:, list(channels)]
    sound = convert(sides.mean(axis=1), rate)
    margins = _predict_margins(np.pad(sound, (0, max(0, tones.length - len(sound)))), tones)
    return Place(start, float(margins[0]))


def list_places(programme: Programme, channels: Sequence[int], tones: FrameTones, every_s: float) -> Iterator[Place]:
    """Yield the best place of each interval of `every_s` that has room for the frame and a gap.

    Raises: NotReadable; OSError.
    """
    at_s = 0.0
    while at_s < programme.duration_s:
        place = find_best_place(programme, channels, tones, at_s, min(at_s + every_s - GAP_S, programme.duration_s))
        if place is not None:
            yield place
        at_s += every_s


def _predict_margins(sound: Samples, tones: FrameTones) -> Samples:
    others = expect_others(measure_blocks(sound), tones)
    return predict_margin(tones.powers / others, tones.tells)
