"""Where frames are in a sound, by the strongest tone of each sixth of the band, without hearing them.

A place is a hop of 256 samples. What is compared there is the part of a frame's tones, in all blocks of its groups,
that are the strongest of their sixth: by chance 1 in 16, and at the limit of hearing 1 in 4.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

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
from soundmark.wire.private.audio import Protocol

# For each protocol, how many blocks of a group that begins at a hop have each tone as their strongest: (6, 16, hops).
BlockCounts: TypeAlias = Mapping[Protocol, NDArray[np.uint8]]

_PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)
_HOP: Final = 256
_HOPS: Final = BLOCK // _HOP
_LINES_MAX: Final = 1024  # Spectra that are held in memory at once.
# A frame of another protocol that has the same tones reaches 1 in 5 and is found beside a better one.
_FOUND_FROM: Final = 0.2
# In standard deviations above chance: noise has one such place in some minutes.
_BEGINS_FROM: Final = 4.3
# A known frame explains a beginning if its share there is this part of that. A likeness reaches some quarter of it.
_KNOWN_FROM: Final = 0.5
# So near to the beginning of a frame, its known tones look like those of another protocol.
_BESIDE: Final = 4 * 9 * BLOCK
# How far from the place where most tones are the strongest a frame may begin, and the steps of the two searches.
_REFINED: Final = 2 * BLOCK
_COARSE_STEP: Final = 128
_FINE_STEP: Final = 32  # Less than a millisecond.


def count_blocks(sides: NDArray[np.floating]) -> Iterator[BlockCounts]:
    """Yield the counts of the mean of all channels, and, if there are several, of each channel.

    `sides` is at 48 kHz, of shape (samples, channels).
    """
    for strongest in _find_strongest(sides):
        tones = np.ascontiguousarray(strongest.T)[:, None]
        is_strongest = (tones == np.arange(TONES_IN_SIXTH, dtype=np.int8)[:, None]).view(np.uint8)
        of_three = _sum_up(is_strongest, 3, _HOPS)  # The groups of all protocols are made of three blocks.
        blocks = {protocol: _known_tones(protocol).group // BLOCK for protocol in _PROTOCOLS}
        yield {protocol: _sum_up(of_three, count // 3, 3 * _HOPS) for protocol, count in blocks.items()}


def _find_strongest(sides: NDArray[np.floating]) -> NDArray[np.int8]:
    """Return the strongest tone of each sixth at each hop, of shape (signals, hops, 6)."""
    channel_count = sides.shape[1]
    signal_count = channel_count + (channel_count > 1)
    if len(sides) < BLOCK:
        return np.zeros((signal_count, 0, SIXTHS), np.int8)
    channels = np.ascontiguousarray(sides.T, np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(channels, BLOCK, axis=1)[:, ::_HOP]
    strongest = np.zeros((signal_count, windows.shape[1], SIXTHS), np.int8)
    rows = max(1, _LINES_MAX // channel_count)
    for at in range(0, windows.shape[1], rows):
        lines = np.fft.rfft(windows[:, at : at + rows])[:, :, FIRST_BIN : FIRST_BIN + TONES]
        if channel_count > 1:  # The spectrum of the mean is the mean of the spectra.
            lines = np.concatenate([lines.mean(axis=0, keepdims=True), lines])
        powers = np.square(lines.real) + np.square(lines.imag)
        strongest[:, at : at + rows] = powers.reshape(*powers.shape[:2], SIXTHS, TONES_IN_SIXTH).argmax(axis=3)
    return strongest


def _sum_up(counts: NDArray[np.uint8], times: int, apart: int) -> NDArray[np.uint8]:
    """Return the sum of the counts at each hop and at others, `apart` hops from each other."""
    length = max(0, counts.shape[2] - (times - 1) * apart)
    total = counts[:, :, :length].copy()
    for number in range(1, times):
        total += counts[:, :, number * apart : number * apart + length]
    return total


def find_beginnings(counts: BlockCounts, known: Sequence[FrameTones]) -> list[tuple[int, int]]:
    """Return the spans, in samples, in which there may be a frame, by the tones that all frames have.

    Beginnings of frames that are known do not count.
    """
    found = [each for tones in known for each in find_frame(counts, tones)]
    explained, parts = np.array(found, np.float64).reshape(-1, 2).T
    spans = []
    for protocol in _PROTOCOLS:
        tones = _known_tones(protocol)
        observed = int((~tones.tells).sum()) * tones.group // BLOCK
        chance = 1 / TONES_IN_SIXTH
        least = chance + _BEGINS_FROM * np.sqrt(chance * (1 - chance) / observed)
        hits = _find_hits(counts, tones, ~tones.tells)
        places = np.flatnonzero(hits >= least)
        # If a known frame is there, its other tones are the strongest as often as those that all frames have.
        is_known = parts >= _KNOWN_FROM * hits[places, None]
        places *= _HOP
        is_new = ~(is_known & (np.abs(places[:, None] - explained) <= _BESIDE)).any(axis=1)
        spans += [(place - BLOCK, place + tones.length + BLOCK) for place in places[is_new].tolist()]
    return _join(spans)


def _join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((max(0, start), end))
    return joined


def find_frame(counts: BlockCounts, tones: FrameTones) -> Iterator[tuple[int, float]]:
    """Yield about where a frame begins, in samples, with the part of its tones that are the strongest there."""
    hits = _find_hits(counts, tones, tones.tells)
    apart = tones.length // _HOP
    while len(hits) and hits.max() >= _FOUND_FROM:
        near = int(np.argmax(hits))
        yield near * _HOP, float(hits[near])
        hits[max(0, near - apart) : near + apart] = 0


def _find_hits(counts: BlockCounts, tones: FrameTones, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the part of the chosen tones that are the strongest, for a frame that begins at each hop."""
    of_protocol = counts[tones.protocol]
    blocks = tones.group // BLOCK
    lead = (tones.length - GROUPS * tones.group) // 2 // _HOP
    places = max(0, of_protocol.shape[2] + blocks * _HOPS - tones.length // _HOP)
    hits = np.zeros(places, np.uint16)
    for group, sixth in np.argwhere(chosen):
        at = lead + group * blocks * _HOPS
        hits += of_protocol[sixth, tones.tones[group, sixth] % TONES_IN_SIXTH, at : at + places]
    return hits / (int(chosen.sum()) * blocks)


def locate(sound: Samples, tones: FrameTones) -> int | None:
    """Return the sample at which a frame most probably begins in a mono sound at 48 kHz; None if it is not there."""
    (counts,) = count_blocks(sound[:, None])
    found = list(find_frame(counts, tones))
    return refine(sound, max(found, key=lambda each: each[1])[0], tones) if found else None


def refine(sound: Samples, place: int, tones: FrameTones) -> int:
    """Return the sample near a place at which the tones of all groups add up to the greatest power."""
    for reach, step in ((_REFINED, _COARSE_STEP), (_COARSE_STEP - _FINE_STEP, _FINE_STEP)):
        last = len(sound) - tones.length
        near = range(max(0, place - reach), min(place + reach, last) + 1, step)
        powers = {begins: float(receive(sound[begins : begins + tones.length], tones).powers.sum()) for begins in near}
        place = max(powers, key=lambda begins: powers[begins], default=place)
    return place


@cache
def _known_tones(protocol: Protocol) -> FrameTones:
    """Return a frame of a protocol. Those of its tones that tell nothing are every frame's."""
    return make_frame_tones("XRC1:brd_" + 16 * "A", protocol)
