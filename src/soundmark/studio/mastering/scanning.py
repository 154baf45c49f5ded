"""Hear a finished master, and find each repetition of what was heard."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray
from soundmark_sdk import hear_samples
from soundmark_sdk.resampling import RATE_HZ

from soundmark.studio.mastering.frame_tones import (
    BLOCK,
    FIRST_BIN,
    GROUPS,
    SIXTHS,
    TONES,
    TONES_IN_SIXTH,
    FrameTones,
    Samples,
    make_frame_tones,
    receive,
)
from soundmark.studio.mastering.programme import Programme
from soundmark.studio.mastering.repetitions import Repetition, convert, measure_repetition
from soundmark.wire.private.audio import Protocol

_PIECE_S: Final = 60.0
_OVERLAP_S: Final = 4.0  # Longer than a frame.
_HOP: Final = 256
_FINE_STEP: Final = 32  # Less than a millisecond.
# The part of a frame's tones that are the strongest of their sixth. By chance it is 1 in 16; at the limit of hearing, 1
# in 4. A frame of another protocol that has the same tones reaches 1 in 5 and is found beside a better one.
_FOUND_FROM: Final = 0.2
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
    frames = _hear_all(programme)
    shapes = [make_frame_tones(frame, protocol) for frame in frames for protocol in get_args(Protocol)]
    chance = default_rng(_SEED)
    found = _keep_best([each for piece in _read_pieces(programme) for each in _search(programme, *piece, shapes)])
    return [
        measure_repetition(programme, each.start, each.channels, each.tones, chance)
        for each in sorted(found, key=lambda each: each.start)
    ]


def _hear_all(programme: Programme) -> list[str]:
    heard: dict[str, None] = {}
    for _, sides in _read_pieces(programme):
        for channels in _list_signals(programme.channel_count):
            sound = sides[:, list(channels)].mean(axis=1)
            if np.any(sound):
                loudest = max(1.0, float(np.abs(sound).max()))
                frames = hear_samples((sound / loudest).astype(np.float32), programme.sample_rate)
                heard.update(dict.fromkeys(frame.text for frame in frames))
    return list(heard)


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
    for channels in _list_signals(programme.channel_count) if shapes else ():
        sound = convert(sides[:, list(channels)].mean(axis=1), rate)
        powers, strongest = _analyse(sound)
        for tones in shapes:
            for place, score in find_frame(powers, strongest, tones):
                begins = _refine(sound, place, tones)
                start, end = (first + round(at * rate / RATE_HZ) for at in (begins, begins + len(tones.samples)))
                yield _Found(start, end, score, tones, channels)


def locate(sound: Samples, tones: FrameTones) -> int | None:
    """Return the sample at which a frame most probably begins in a mono sound at 48 kHz; None if it is not there."""
    found = list(find_frame(*_analyse(sound), tones))
    return _refine(sound, max(found, key=lambda each: each[1])[0], tones) if found else None


def _refine(sound: Samples, place: int, tones: FrameTones) -> int:
    """Return the sample near a place at which the tones of all groups add up to the greatest power."""
    length = len(tones.samples)
    near = range(max(0, place - BLOCK), min(place + BLOCK, len(sound) - length) + 1, _FINE_STEP)
    powers = {begins: float(receive(sound[begins : begins + length], tones).powers.sum()) for begins in near}
    return max(powers, key=lambda begins: powers[begins], default=place)


def _analyse(sound: Samples) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return each tone against the mean of its sixth, and the strongest of each sixth, at each hop."""
    if len(sound) < BLOCK:
        return np.zeros((0, TONES), np.float32), np.zeros((0, SIXTHS), np.int8)
    windows = np.lib.stride_tricks.sliding_window_view(sound, BLOCK)[::_HOP]
    parts = []
    for at in range(0, len(windows), 4096):  # So that memory does not hold all spectra at once.
        lines = np.fft.rfft(windows[at : at + 4096], axis=1)[:, FIRST_BIN : FIRST_BIN + TONES]
        parts.append(np.square(np.abs(lines)).astype(np.float32))
    sixths = np.concatenate(parts).reshape(-1, SIXTHS, TONES_IN_SIXTH)
    relative = sixths / np.maximum(sixths.mean(axis=2, keepdims=True), np.float32(1e-20))
    return relative.reshape(-1, TONES), sixths.argmax(axis=2).astype(np.int8)


def find_frame(
    powers: NDArray[np.float32], strongest: NDArray[np.int8], tones: FrameTones
) -> Iterator[tuple[int, float]]:
    """Yield the samples at which a frame begins, each with the part of its tones that are the strongest there."""
    hops = BLOCK // _HOP
    blocks = tones.group // BLOCK
    lead = (len(tones.samples) - GROUPS * tones.group) // 2 // _HOP
    places = len(powers) - len(tones.samples) // _HOP + hops
    if places < 1:
        return
    hits, strength = np.zeros(places), np.zeros(places)
    for group, sixth in np.argwhere(tones.tells):
        tone = int(tones.tones[group, sixth])
        for block in range(blocks):
            at = lead + (group * blocks + block) * hops
            hits += strongest[at : at + places, sixth] == tone % TONES_IN_SIXTH
            strength += powers[at : at + places, tone]
    hits /= tones.tells.sum() * blocks
    apart = len(tones.samples) // _HOP
    while len(hits) and hits.max() >= _FOUND_FROM:
        near = int(np.argmax(hits))
        score, low = float(hits[near]), max(0, near - hops)
        best = low + int(np.argmax(strength[low : near + hops + 1]))
        yield best * _HOP, score
        hits[max(0, near - apart) : near + apart] = 0


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
