"""Hear a finished master, and find each repetition of what was heard."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np
from numpy.random import Generator, default_rng
from soundmark_sdk import Frame, Listener, hear_samples
from soundmark_sdk.resampling import RATE_HZ

from soundmark.studio.mastering.frame_search import count_blocks, find_beginnings, find_frame, refine
from soundmark.studio.mastering.frame_tones import BLOCK, FrameTones, Samples, make_frame_tones
from soundmark.studio.mastering.programme import Programme
from soundmark.studio.mastering.repetitions import Repetition, convert, measure_repetition
from soundmark.wire.private.audio import Protocol

_PIECE_S: Final = 60.0
_OVERLAP_S: Final = 4.0  # Longer than a frame.
_SAMPLE_MAX: Final = 64.0  # A receiver clips floats beyond.
_SEED: Final = 20261126


@dataclass(frozen=True, slots=True)
class _Found:
    """A place where a frame seems to be, from `start` to `end` in samples of the programme; `score` speaks for it."""

    start: int
    end: int
    score: float
    tones: FrameTones
    channels: tuple[int, ...]


def scan(programme: Programme) -> list[Repetition]:
    """Return each repetition of every frame that is heard anywhere in a programme, in the order of time.

    A repetition that the receiver does not hear by itself is returned too. Memory does not depend on
    the length, except for a few numbers for each repetition.

    Raises: NotReadable; OSError.
    """
    shapes = [tones for of_frame in _hear_all(programme).values() for tones in of_frame]
    if not shapes:
        return []
    chance = default_rng(_SEED)
    found = _keep_best([each for piece in _read_pieces(programme) for each in _search(programme, *piece, shapes)])
    measured = [(each, _measure(programme, each, chance)) for each in sorted(found, key=lambda each: each.start)]
    heard = [each for each, repetition in measured if repetition.is_heard]
    return [repetition for each, repetition in measured if not _is_likeness(each, repetition, heard)]


def _hear_all(programme: Programme) -> dict[str, list[FrameTones]]:
    """Return every frame that is heard in the mean of all channels, or in one of them, as each protocol sends it.

    To hear a channel costs as much as to hear the mean, so it is done where something in it begins as a frame does.
    """
    rate = programme.sample_rate
    heard: dict[str, list[FrameTones]] = {}

    def add(frames: Iterable[Frame]) -> None:
        for text in (frame.text for frame in frames):
            heard.setdefault(text, [make_frame_tones(text, protocol) for protocol in get_args(Protocol)])

    with Listener(rate) as listener:
        for _, sides in _read_pieces(programme):
            mean = sides[: round(_PIECE_S * rate)].mean(axis=1)
            # One gain for the piece: what a receiver clips would be lost.
            loudest = max(1.0, float(np.abs(mean).max(initial=0.0)) / _SAMPLE_MAX)
            add(listener.feed((mean / loudest).astype(np.float32)))
            if not (sides == sides[:, :1]).all():  # Otherwise each channel is the mean.
                add(_hear_channels(sides, rate, [tones for of_frame in heard.values() for tones in of_frame]))
        add(listener.finish())
    return heard


def _hear_channels(sides: Samples, rate: int, known: Sequence[FrameTones]) -> list[Frame]:
    """Return the frames that are heard in one channel, beside those that are known."""
    frames: list[Frame] = []
    sides = convert(sides, rate)
    _, *of_channels = count_blocks(sides)
    for channel, counts in enumerate(of_channels):
        for start, end in find_beginnings(counts, known):
            sound = sides[start:end, channel]
            loudest = max(1.0, float(np.abs(sound).max(initial=0.0)))
            frames += hear_samples((sound / loudest).astype(np.float32), RATE_HZ)
    return frames


def _read_pieces(programme: Programme) -> Iterator[tuple[int, Samples]]:
    """Yield overlapping pieces, each with its first sample."""
    step = round(_PIECE_S * programme.sample_rate)
    for start in range(0, programme.sample_count, step):
        yield start, programme.read(start, step + round(_OVERLAP_S * programme.sample_rate))


def _list_signals(channel_count: int) -> list[tuple[int, ...]]:
    """Return what is listened to: the mean of all channels, and each channel."""
    each: list[tuple[int, ...]] = [(channel,) for channel in range(channel_count)]
    return each if channel_count == 1 else [tuple(range(channel_count)), *each]


def _search(programme: Programme, first: int, sides: Samples, shapes: Sequence[FrameTones]) -> Iterator[_Found]:
    rate = programme.sample_rate
    all_counts = count_blocks(convert(sides, rate))
    for channels, counts in zip(_list_signals(programme.channel_count), all_counts, strict=True):
        for tones in shapes:
            for place, score in find_frame(counts, tones):
                start, end = (first + round(at * rate / RATE_HZ) for at in (place, place + tones.length))
                yield _Found(start, end, score, tones, channels)


def _measure(programme: Programme, found: _Found, chance: Generator) -> Repetition:
    """Measure a repetition, after finding out where it begins exactly."""
    rate = programme.sample_rate
    around = round(3 * BLOCK * rate / RATE_HZ)
    first = max(0, found.start - around)
    sides = programme.read(first, found.end + around - first)[:, list(found.channels)]
    place = round((found.start - first) * RATE_HZ / rate)
    begins = refine(convert(sides.mean(axis=1), rate), place, found.tones)
    return measure_repetition(programme, first + round(begins * rate / RATE_HZ), found.channels, found.tones, chance)


def _is_likeness(found: _Found, repetition: Repetition, heard: Sequence[_Found]) -> bool:
    """Return whether a frame seems to be there only because another one, which is heard, has some of its tones.

    Then most of its own tones have no power. The letters of two tokens have much in common.
    """
    has_power = repetition.is_heard or repetition.level_db is not None
    return not has_power and any(each.start < found.end and found.start < each.end for each in heard)


def _keep_best(found: Sequence[_Found]) -> list[_Found]:
    """Return the best of those that are of one frame at the same time, in whatever channel, piece or protocol."""
    kept: list[_Found] = []
    for each in sorted(found, key=lambda each: -each.score):
        is_known = any(
            other.tones.frame == each.tones.frame and other.start < each.end and each.start < other.end
            for other in kept
        )
        if not is_known:
            kept.append(each)
    return kept
