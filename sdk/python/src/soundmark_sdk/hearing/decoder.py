"""Hears frames in a stream: where they may begin, and in which order these places are read."""

from typing import Final

import numpy as np

from soundmark_sdk.hearing.baseband import BAND_RATE_HZ, Baseband
from soundmark_sdk.hearing.frame_code import GROUP_BLOCKS, KNOWN_GROUPS
from soundmark_sdk.hearing.power_sums import PowerSums
from soundmark_sdk.hearing.prefix_search import Candidate, PrefixSearch
from soundmark_sdk.hearing.reading import CLEAR_KNOWN_BITS, Effort, KeptBand, Reader
from soundmark_sdk.hearing.repetitions import RepetitionSearch, list_counts
from soundmark_sdk.hearing.tone_grid import grid_of
from soundmark_sdk.resampling import RATE_HZ, Samples

PROTOCOLS: Final = tuple(GROUP_BLOCKS)
_PIECE_S: Final = 0.25  # The stream is searched in pieces of this length.
_PIECE: Final = int(_PIECE_S * RATE_HZ)
_CLEAR_MAX: Final = 2
_KEPT: Final = int(5.0 * BAND_RATE_HZ)  # Longer than a frame.


class Decoder:
    """A decoder of a stream of mono samples at 48 kHz; full scale is -1..1.

    With a period, repetitions that are as far apart are searched and read together.
    """

    def __init__(self, protocols: tuple[int, ...] = PROTOCOLS, *, period_s: float | None = None) -> None:
        self._baseband: Final = Baseband()
        self._searches: Final = [PrefixSearch(grid_of(protocol)) for protocol in protocols]
        self._repetitions: Final = (
            [] if period_s is None else [RepetitionSearch(grid_of(each), period_s) for each in protocols]
        )
        self._power_sums: Final = PowerSums()
        earlier_s = 0.0 if period_s is None else 1.01 * period_s * (list_counts(period_s)[-1] - 1)
        self._band: Final = KeptBand(_KEPT + int(earlier_s * BAND_RATE_HZ))
        self._reader: Final = Reader(self._band, self._power_sums, period_s)
        self._waiting: list[Candidate] = []
        self._heard: list[Candidate] = []
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
            self._waiting += search.feed(band)
        for search, repetitions in zip(self._searches, self._repetitions, strict=False):
            self._waiting += repetitions.feed(search.completed)
        self._waiting += self._power_sums.feed(band)
        self._band.feed(band)
        self._reader.earn(len(band) / BAND_RATE_HZ)
        tokens = self._try(self._find_ready())
        self._band.trim()
        self._heard = [each for each in self._heard if each.start > self._band.end - 2 * _KEPT]
        return tokens

    def _find_ready(self) -> list[Candidate]:
        """Return the candidates whose frame has ended, except for those that a stronger one may explain later."""
        ready: list[Candidate] = []
        unfinished: list[Candidate] = []
        for candidate in sorted(self._waiting, key=lambda each: -each.score):
            if candidate.start + 1.05 * grid_of(candidate.protocol).frame >= self._band.end:
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
                self._hear(candidate, "all", found)
        clear: list[tuple[float, Candidate]] = []
        for candidate in doubtful:
            known_bits = self._hear(candidate, "little", found)
            if known_bits >= CLEAR_KNOWN_BITS and not any(_is_trace(candidate, each) for each in self._heard):
                clear.append((known_bits, candidate))
        # Another Code over the one that was heard begins as clearly. More of its places look so than is time for.
        for _, candidate in sorted(clear, key=lambda each: -each[0])[:_CLEAR_MAX]:
            self._hear(candidate, "spare", found)
        return [token for _, token in sorted(found)]

    def _hear(self, candidate: Candidate, effort: Effort, found: list[tuple[float, str]]) -> float:
        """Add the end of the frame at this place and its token, if it is one; return the evidence for its beginning."""
        # Beside the place of a frame that was heard, its traces look like a beginning too.
        if effort != "all" and any(_is_beside(candidate, each) for each in self._heard):
            return 0.0
        token, known_bits = self._reader.read(candidate, effort)
        if token is None:
            return known_bits
        self._heard.append(candidate)
        found.append((candidate.start + grid_of(candidate.protocol).frame, token))
        return 0.0


def _is_beside(one: Candidate, other: Candidate) -> bool:
    """Return whether a candidate is at the place of the other one, or at its marker in any protocol."""
    grid, other_grid = grid_of(one.protocol), grid_of(other.protocol)
    ends_apart = abs(one.start + grid.frame - other.start - other_grid.frame)
    is_marker = one.score == 0 and min(abs(one.start - other.start), ends_apart) < other_grid.group
    return is_marker or (one.protocol == other.protocol and abs(one.start - other.start) < grid.group)


def _is_within(one: Candidate, other: Candidate) -> bool:
    """Return whether a candidate begins in the other one's frame, or shortly before: it may be made of its tones."""
    return -_reach(one, other) < one.start - other.start < grid_of(other.protocol).frame


def _is_trace(one: Candidate, other: Candidate) -> bool:
    """Return whether the known tones of the other one may look like the beginning of a candidate."""
    return one.protocol != other.protocol and abs(one.start - other.start) < _reach(one, other)


def _reach(one: Candidate, other: Candidate) -> int:
    return KNOWN_GROUPS * max(grid_of(one.protocol).group, grid_of(other.protocol).group)
