"""Reads the frame at one place: alignment, likelihoods, decoding, and the evidence that decides."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from soundmark_sdk.hearing.alignment import align, follow
from soundmark_sdk.hearing.baseband import BAND_RATE_HZ, Band
from soundmark_sdk.hearing.frame_code import GROUPS, KNOWN_GROUPS
from soundmark_sdk.hearing.likelihoods import (
    find_evidence,
    find_known_bits,
    find_likelihoods,
    normalise,
)
from soundmark_sdk.hearing.ordered_statistics import SETS_MAX, Bits, decode
from soundmark_sdk.hearing.power_sums import PowerSums
from soundmark_sdk.hearing.prefix_search import Candidate
from soundmark_sdk.hearing.tone_grid import Clock, ToneGrid, grid_of

# What is tried at a place: everything; what is likeliest to help; or everything, if clear frames are left enough.
Effort: TypeAlias = Literal["all", "little", "spare"]

# What a frame that nobody sent must overcome. There are 2^96 frames, so 10 bits beyond 96 are one wrong frame in a
# thousand sounds that begin like one; 28 bits with the known part, which says where it is.
_UNKNOWN_MIN_BITS: Final = 106.0
_TOGETHER_MIN_BITS: Final = 144.0
# Less than that speaks for a place only by chance.
_KNOWN_MIN_BITS: Final = 12.0
CLEAR_KNOWN_BITS: Final = 24.0
# Further tries, and those without a clear beginning, get this many sets.
_SETS_FEW: Final = 2
# Hostile sound may look like a beginning all the time. These bound the work in a second, and what may be saved up.
_READINGS_PER_S: Final = 12.0
_SETS_PER_S: Final = 4.0
_SUMS_PER_S: Final = 4.0
_SAVED_S: Final = 8.0
# What is doubtful, and repetitions together, are left alone while no more than this is left for clear frames.
_READINGS_RESERVED: Final = 48
_SETS_RESERVED: Final = 12
_FAILED_KEPT: Final = 8
# Where a frame is read again, in parts of a group: an echo may be stronger than the first sound.
_LATER_SHIFTS: Final = (1 / 6, -1 / 12)


@dataclass(slots=True)
class _Budget:
    """Work that may be done: some in each second, and what was saved."""

    per_s: float
    left: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.per_s * _SAVED_S

    def earn(self, seconds: float) -> None:
        self.left = min(self.left + self.per_s * seconds, self.per_s * _SAVED_S)


class KeptBand:
    """The last seconds of the band. Places count from the first sample of the stream."""

    def __init__(self, kept_count: int) -> None:
        self._kept_count: Final = kept_count
        self.samples: Band = np.zeros(0, np.complex64)
        self.first: int = 0

    @property
    def end(self) -> int:
        """How many samples there were."""
        return self.first + len(self.samples)

    def feed(self, band: Band) -> None:
        """Continue the band."""
        self.samples = np.concatenate([self.samples, band])

    def trim(self) -> None:
        """Forget what is too old."""
        surplus = max(0, len(self.samples) - self._kept_count)
        self.samples, self.first = self.samples[surplus:], self.first + surplus


class Reader:
    """A reader of candidates, one at a time, that remembers those it could not read."""

    def __init__(self, band: KeptBand, power_sums: PowerSums, period_s: float | None = None) -> None:
        self._band: Final = band
        self._power_sums: Final = power_sums
        self._period: Final = (period_s or 0.0) * BAND_RATE_HZ
        self._failed: Final[deque[tuple[int, Bits, float]]] = deque(maxlen=_FAILED_KEPT)
        self._readings: Final = _Budget(_READINGS_PER_S)
        self._sets: Final = _Budget(_SETS_PER_S)
        self._sums: Final = _Budget(_SUMS_PER_S)

    def earn(self, seconds: float) -> None:
        """Allow the work of as much sound."""
        for budget in (self._readings, self._sets, self._sums):
            budget.earn(seconds)

    def read(self, candidate: Candidate, effort: Effort = "all") -> tuple[str | None, float]:
        """Return the letters of the token at this place, and the evidence that a frame begins there, in bits."""
        if candidate.score == 0:
            return self._read_sums(candidate.protocol, candidate.start), 0.0
        if self._readings.left < 1:
            return None, 0.0
        if effort != "all" and (self._readings.left < _READINGS_RESERVED or self._sets.left < _SETS_RESERVED):
            return None, 0.0
        if candidate.copies > 1:
            return self._read_repetitions(candidate), 0.0
        grid = grid_of(candidate.protocol)
        # Clear sounds have many places that only look like a beginning, and none is worth an alignment.
        known_bits = self._find_known_bits(grid, candidate)
        if known_bits < _KNOWN_MIN_BITS:
            return None, known_bits
        (start,), clock = self._align([candidate.start], candidate.clock, grid)
        evidence, known_bits = self._measure(grid, start, clock)
        token = self._judge(evidence, known_bits, _SETS_FEW if effort == "little" else SETS_MAX)
        if token is None and known_bits >= _KNOWN_MIN_BITS:
            token = self._read_sums(candidate.protocol, start)
            if token is None and effort != "little":
                token = self._read_again(grid, start, clock, (evidence, known_bits))
        return token, known_bits

    def _align(self, starts: Sequence[float], clock: float, grid: ToneGrid) -> tuple[list[float], float]:
        first = self._band.first
        aligned, clock = align([start - first for start in starts], clock, self._band.samples, grid)
        return [start + first for start in aligned], clock

    def _read_repetitions(self, candidate: Candidate) -> str | None:
        """Read a frame and its earlier repetitions as one."""
        grid = grid_of(candidate.protocol)
        period = self._period / (1 + candidate.clock)
        starts, clock = self._align(
            [candidate.start - number * period for number in range(candidate.copies)], candidate.clock, grid
        )
        total, total_known = self._measure(grid, starts[0], clock)
        for start in starts[1:]:
            evidence, known_bits = self._measure(grid, start, clock)
            total, total_known = normalise(total + evidence), total_known + known_bits
        return self._judge(total, total_known, SETS_MAX)

    def _read_again(self, grid: ToneGrid, start: float, clock: float, first: tuple[Bits, float]) -> str | None:
        """Read later and earlier, and then together with earlier failures."""
        clearest = first
        for shift in _LATER_SHIFTS:
            again = self._measure(grid, start + shift * grid.group, clock)
            token = self._judge(*again, _SETS_FEW)
            if token is not None:
                return token
            clearest = max(clearest, again, key=lambda each: each[1])
        first_sample = self._band.first
        clocks = follow(start - first_sample, clock, self._band.samples, grid)
        return self._judge(*self._measure(grid, start, clocks), _SETS_FEW) or self._combine(grid.protocol, *clearest)

    def _find_known_bits(self, grid: ToneGrid, candidate: Candidate) -> float:
        start = candidate.start - self._band.first
        groups = grid.cut(self._band.samples, start, candidate.clock, KNOWN_GROUPS)
        return find_known_bits(*grid.find_powers(groups, candidate.clock), grid)

    def _measure(self, grid: ToneGrid, start: float, clock: Clock) -> tuple[Bits, float]:
        """Return the evidence for each value of the unknown bytes, and for what is known."""
        self._readings.left -= 1
        groups = grid.cut(self._band.samples, start - self._band.first, clock, GROUPS)
        likelihoods = find_likelihoods(*grid.find_powers(groups, clock), grid)
        likelihoods[~groups.any(axis=1)] = 1  # A group that is not there says nothing.
        return find_evidence(likelihoods)

    def _read_sums(self, protocol: int, start: float) -> str | None:
        """Return the letters of the token that the second reading finds."""
        if self._sums.left < 1:
            return None
        self._sums.left -= 1
        return self._power_sums.read(protocol, start)

    def _judge(self, evidence: Bits, known_bits: float, sets_max: int) -> str | None:
        """Return the letters of the token if the evidence suffices."""
        needed = max(_UNKNOWN_MIN_BITS, _TOGETHER_MIN_BITS - max(known_bits, 0.0))
        if known_bits < _KNOWN_MIN_BITS or evidence.max(axis=1).sum() < needed or self._sets.left < 1:
            return None
        # Half of what is left stays for the next candidate: the first set finds most frames.
        sets_count = min(sets_max if known_bits >= CLEAR_KNOWN_BITS else _SETS_FEW, math.ceil(self._sets.left / 2))
        decoded, used = decode(evidence, enough_bits=needed, sets_count=sets_count)
        self._sets.left -= used
        return decoded.token_text if decoded is not None and decoded.evidence_bits >= needed else None

    def _combine(self, protocol: int, evidence: Bits, known_bits: float) -> str | None:
        """Add what earlier failures heard, if they begin as clearly as this: it may be the same frame again."""
        if known_bits < CLEAR_KNOWN_BITS:
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
