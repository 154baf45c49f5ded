"""Hears frames in a stream: search, alignment, likelihoods, decoding, and the evidence that decides."""

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from soundmark_sdk.hearing.alignment import align
from soundmark_sdk.hearing.baseband import BAND_RATE_HZ, Band, Baseband
from soundmark_sdk.hearing.frame_code import GROUP_BLOCKS, GROUPS, KNOWN_GROUPS
from soundmark_sdk.hearing.likelihoods import find_evidence, find_likelihoods, normalise
from soundmark_sdk.hearing.ordered_statistics import SETS_MAX, Bits, decode
from soundmark_sdk.hearing.prefix_search import Candidate, PrefixSearch
from soundmark_sdk.hearing.tone_grid import ToneGrid, grid_of
from soundmark_sdk.resampling import RATE_HZ, Samples

PROTOCOLS: Final = tuple(GROUP_BLOCKS)
# What a frame that nobody sent must overcome. There are 2^96 frames, so 10 bits beyond 96 are one wrong frame in a
# thousand sounds that begin like one; 28 bits with the known part, which says where it is.
_UNKNOWN_MIN_BITS: Final = 106.0
_TOGETHER_MIN_BITS: Final = 144.0
# Less than that speaks for a place only by chance.
_KNOWN_MIN_BITS: Final = 12.0
_CLEAR_KNOWN_BITS: Final = 24.0
# Further tries, and those without a clear beginning, get this many sets.
_SETS_FEW: Final = 2
_PIECE_S: Final = 0.25  # The stream is searched in pieces of this length.
_PIECE: Final = int(_PIECE_S * RATE_HZ)
_KEPT_S: Final = 5.0  # Longer than a frame.
# Hostile sound may look like a beginning all the time. These bound the work in a second, and what may be saved up.
_READINGS_PER_S: Final = 12.0
_SETS_PER_S: Final = 4.0
_SAVED_S: Final = 8.0
# What is doubtful, and repetitions together, are left alone while no more than this is left for clear frames.
_READINGS_RESERVED: Final = 48
_SETS_RESERVED: Final = 12
_FAILED_KEPT: Final = 8
# Where a frame is read, in parts of a group, and the sets for it: an echo may be stronger than the first sound.
_TRIES: Final = ((0.0, SETS_MAX), (1 / 6, _SETS_FEW), (-1 / 12, _SETS_FEW))
_DOUBTFUL_TRIES: Final = ((0.0, _SETS_FEW),)


@dataclass(slots=True)
class _Budget:
    """Work that may be done: some in each second, and what was saved."""

    per_s: float
    left: float

    def earn(self, seconds: float) -> None:
        self.left = min(self.left + self.per_s * seconds, self.per_s * _SAVED_S)


class Decoder:
    """A decoder of a stream of mono samples at 48 kHz, in -1..1."""

    def __init__(self, protocols: tuple[int, ...] = PROTOCOLS) -> None:
        self._baseband: Final = Baseband()
        self._searches: Final = [PrefixSearch(grid_of(protocol)) for protocol in protocols]
        self._band: Band = np.zeros(0, np.complex64)
        # Their starts count from the first sample of the band that is kept.
        self._waiting: list[Candidate] = []
        self._heard: list[Candidate] = []
        self._failed: Final[deque[tuple[int, Bits, float]]] = deque(maxlen=_FAILED_KEPT)
        self._readings: Final = _Budget(_READINGS_PER_S, _READINGS_PER_S * _SAVED_S)
        self._sets: Final = _Budget(_SETS_PER_S, _SETS_PER_S * _SAVED_S)
        self._pending: Samples = np.zeros(0, np.float32)

    def feed(self, samples: Samples) -> list[str]:
        """Return the letters of each token that these samples complete, in the order in which they end."""
        found: list[str] = []
        for first in range(0, len(samples), _PIECE):
            self._pending = np.concatenate([self._pending, samples[first : first + _PIECE]])
            if len(self._pending) >= _PIECE:
                piece, self._pending = self._pending[:_PIECE], self._pending[_PIECE:]
                found += self._advance(piece)
        return found

    def finish(self) -> list[str]:
        """Return the tokens that the end of the stream completes, as if silence followed."""
        found = self.feed(np.zeros(2 * _PIECE, np.float32))
        return [*found, *self._try(self._waiting)]

    def _advance(self, samples: Samples) -> list[str]:
        band = self._baseband.feed(samples)
        for search in self._searches:
            found = search.feed(band)
            self._waiting += [replace(each, start=each.start + len(self._band)) for each in found]
        self._band = np.concatenate([self._band, band])
        seconds = len(band) / BAND_RATE_HZ
        self._readings.earn(seconds)
        self._sets.earn(seconds)
        tokens = self._try(self._find_ready())
        surplus = max(0, len(self._band) - int(_KEPT_S * BAND_RATE_HZ))
        self._band = self._band[surplus:]
        self._waiting = [replace(each, start=each.start - surplus) for each in self._waiting]
        heard = (replace(each, start=each.start - surplus) for each in self._heard)
        self._heard = [each for each in heard if each.start > -len(self._band)]
        return tokens

    def _find_ready(self) -> list[Candidate]:
        """Return the candidates whose frame has ended, except for those that a stronger one may explain later."""
        ready: list[Candidate] = []
        unfinished: list[Candidate] = []
        for candidate in sorted(self._waiting, key=lambda each: -each.score):
            if candidate.start + 1.05 * grid_of(candidate.protocol).frame >= len(self._band):
                unfinished.append(candidate)
            elif not any(each.score > candidate.score and _is_within(candidate, each) for each in unfinished):
                ready.append(candidate)
        return ready

    def _try(self, candidates: list[Candidate]) -> list[str]:
        """Try the strongest first, as long as there is time, and those last that a frame which was heard explains."""
        self._waiting = [each for each in self._waiting if each not in candidates]
        found: list[tuple[float, str]] = []
        doubtful: list[Candidate] = []
        for candidate in sorted(candidates, key=lambda each: -each.score):
            if any(_is_within(candidate, each) for each in self._heard):
                doubtful.append(candidate)
            else:
                found += self._hear(candidate, is_doubtful=False)
        for candidate in doubtful:
            # Beside the place of a frame that was heard, its traces look like a beginning too.
            if not any(_is_beside(candidate, each) for each in self._heard):
                found += self._hear(candidate, is_doubtful=True)
        return [token for _, token in sorted(found)]

    def _hear(self, candidate: Candidate, *, is_doubtful: bool) -> list[tuple[float, str]]:
        """Return the end of the frame at this place and its token, if it is one."""
        if self._readings.left < 1:
            return []
        if is_doubtful and (self._readings.left < _READINGS_RESERVED or self._sets.left < _SETS_RESERVED):
            return []
        grid = grid_of(candidate.protocol)
        token = self._decode(candidate, grid, is_doubtful=is_doubtful)
        if token is None:
            return []
        self._heard.append(candidate)
        return [(candidate.start + grid.frame, token)]

    def _decode(self, candidate: Candidate, grid: ToneGrid, *, is_doubtful: bool) -> str | None:
        start, clock = align(candidate, self._band, grid)
        kept: tuple[Bits, float] | None = None
        for shift, sets_max in _DOUBTFUL_TRIES if is_doubtful else _TRIES:
            self._readings.left -= 1
            groups = grid.cut(self._band, start + shift * grid.group, clock, GROUPS)
            likelihoods = find_likelihoods(*grid.find_powers(groups, clock), grid)
            likelihoods[~groups.any(axis=1)] = 1  # A group that is not there says nothing.
            evidence, known_bits = find_evidence(likelihoods)
            token = self._judge(evidence, known_bits, sets_max)
            if token is not None:
                return token
            if kept is None and known_bits < _KNOWN_MIN_BITS:
                return None
            if kept is None or known_bits > kept[1]:
                kept = evidence, known_bits
        return self._combine(candidate.protocol, *kept) if kept is not None and not is_doubtful else None

    def _judge(self, evidence: Bits, known_bits: float, sets_max: int) -> str | None:
        """Return the letters of the token if the evidence suffices."""
        needed = max(_UNKNOWN_MIN_BITS, _TOGETHER_MIN_BITS - max(known_bits, 0.0))
        if known_bits < _KNOWN_MIN_BITS or evidence.max(axis=1).sum() < needed or self._sets.left < 1:
            return None
        # Half of what is left stays for the next candidate: the first set finds most frames.
        sets_count = min(sets_max if known_bits >= _CLEAR_KNOWN_BITS else _SETS_FEW, math.ceil(self._sets.left / 2))
        decoded, used = decode(evidence, enough_bits=needed, sets_count=sets_count)
        self._sets.left -= used
        return decoded.token_text if decoded is not None and decoded.evidence_bits >= needed else None

    def _combine(self, protocol: int, evidence: Bits, known_bits: float) -> str | None:
        """Add what earlier failures heard, if they begin as clearly as this: it may be the same frame again."""
        if known_bits < _CLEAR_KNOWN_BITS:
            return None
        earlier = [each for each in self._failed if each[0] == protocol]
        self._failed.append((protocol, evidence, known_bits))
        if self._sets.left < _SETS_RESERVED:
            return None
        total, total_known = evidence, known_bits
        for _, other, other_known in reversed(earlier):
            total, total_known = normalise(total + other), total_known + other_known
            token = self._judge(total, total_known, 1)
            if token is not None:
                self._failed.clear()
                return token
        return None


def _is_beside(one: Candidate, other: Candidate) -> bool:
    return one.protocol == other.protocol and abs(one.start - other.start) < grid_of(one.protocol).group


def _is_within(one: Candidate, other: Candidate) -> bool:
    """Return whether a candidate begins in the other one's frame, or shortly before: it may be made of its tones."""
    grid = grid_of(other.protocol)
    near = KNOWN_GROUPS * max(grid.group, grid_of(one.protocol).group)
    return -near < one.start - other.start < grid.frame
