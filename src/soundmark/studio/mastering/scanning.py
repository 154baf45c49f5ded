"""Hear a finished master, and find each repetition of what was heard."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, get_args

import numpy as np
from numpy.random import Generator, default_rng
from soundmark_sdk import Frame, Listener, hear_samples
from soundmark_sdk.resampling import RATE_HZ

from soundmark.studio.mastering.frame_search import BlockCounts, count_blocks, find_beginnings, find_frame, refine
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
    chance = default_rng(_SEED)
    found = _keep_best(_find_all(programme))
    measured = [(each, _measure(programme, each, chance)) for each in sorted(found, key=lambda each: each.start)]
    heard = [each for each, repetition in measured if repetition.is_heard]
    return [repetition for each, repetition in measured if not _is_likeness(each, repetition, heard)]


def _find_all(programme: Programme) -> list[_Found]:
    """Return where any frame seems to be that is heard in the mean of all channels, or in one of them.

    To hear a channel costs as much as to hear the mean, so it is done where something in it begins as a frame does.
    Each piece is searched when it is heard, and once more if a frame is heard for the first time in a later one.
    """
    rate = programme.sample_rate
    shapes: list[FrameTones] = []
    pieces: list[tuple[int, int, list[_Found]]] = []  # With the number of shapes that were searched for.

    def add(frames: Iterable[Frame]) -> None:
        for text in (frame.text for frame in frames):
            if all(each.frame != text for each in shapes):
                shapes.extend(make_frame_tones(text, protocol) for protocol in get_args(Protocol))

    with Listener(rate) as listener:
        for first in range(0, programme.sample_count, round(_PIECE_S * rate)):
            sides = _read_piece(programme, first)
            add(_hear_mean(listener, sides[: round(_PIECE_S * rate)]))
            has_more = not (sides == sides[:, :1]).all()  # Otherwise each channel is the mean.
            all_counts: list[BlockCounts] = []
            if shapes or has_more:
                sides = convert(sides, rate)
                all_counts = list(count_blocks(sides))
                add(_hear_channels(sides, all_counts[1:], shapes) if has_more else [])
            found = list(_search(programme, first, all_counts, shapes)) if shapes else []
            pieces.append((first, len(shapes), found))
        add(listener.finish())
    for first, count, found in pieces:
        if count < len(shapes):
            found[:] = _search(programme, first, count_blocks(convert(_read_piece(programme, first), rate)), shapes)
    return list(chain.from_iterable(found for _, _, found in pieces))


def _hear_mean(listener: Listener, sides: Samples) -> list[Frame]:
    mean = sides.mean(axis=1)
    # One gain for the piece: what a receiver clips would be lost.
    loudest = max(1.0, float(np.abs(mean).max(initial=0.0)) / _SAMPLE_MAX)
    return listener.feed((mean / loudest).astype(np.float32))


def _hear_channels(sides: Samples, of_channels: Sequence[BlockCounts], known: Sequence[FrameTones]) -> list[Frame]:
    """Return the frames that are heard in one channel at 48 kHz, beside those that are known."""
    frames: list[Frame] = []
    for channel, counts in enumerate(of_channels):
        for start, end in find_beginnings(counts, known):
            sound = sides[start:end, channel]
            loudest = max(1.0, float(np.abs(sound).max(initial=0.0)))
            frames += hear_samples((sound / loudest).astype(np.float32), RATE_HZ)
    return frames


def _read_piece(programme: Programme, start: int) -> Samples:
    """Return a piece, and a little of the next."""
    return programme.read(start, round(_PIECE_S * programme.sample_rate) + round(_OVERLAP_S * programme.sample_rate))


def _list_signals(channel_count: int) -> list[tuple[int, ...]]:
    """Return what is listened to: the mean of all channels, and each channel."""
    each: list[tuple[int, ...]] = [(channel,) for channel in range(channel_count)]
    return each if channel_count == 1 else [tuple(range(channel_count)), *each]


def _search(
    programme: Programme, first: int, all_counts: Iterable[BlockCounts], shapes: Sequence[FrameTones]
) -> Iterator[_Found]:
    rate = programme.sample_rate
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
