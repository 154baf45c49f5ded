"""The second reading: the power of short windows, added up over each group, and the strongest tone of each sixteen.

It hears less in noise than likelihoods of whole groups do, and more through long dropouts and beside another Code.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing.baseband import BAND_RATE_HZ, BLOCK, Band
from soundmark_sdk.hearing.frame_code import (
    CHECK_BYTES,
    FIRST_TONE_HZ,
    GROUP_BLOCKS,
    GROUPS,
    LETTERS,
    MARKER_BLOCKS,
    MARKER_PAIRS,
    PREFIX,
    TONE_STEP_HZ,
    TONES,
)
from soundmark_sdk.hearing.prefix_search import Candidate
from soundmark_sdk.hearing.reed_solomon import correct
from soundmark_sdk.hearing.tone_grid import TONE_COUNT, Powers, find_spectra

_COLUMNS_PER_BLOCK: Final = 4
_COLUMN: Final = BLOCK // _COLUMNS_PER_BLOCK  # Samples of the band from one window to the next.
_MARKER_COLUMNS: Final = MARKER_BLOCKS * _COLUMNS_PER_BLOCK
_MARKER_WINDOWS: Final = _MARKER_COLUMNS - _COLUMNS_PER_BLOCK + 1  # Windows that lie in a marker as a whole.
# Over noise, the contrast of a marker has a standard deviation of 0.03 (measured).
_CONTRAST_MIN: Final = 0.12
_SEARCH_COLUMNS: Final = 8
_READINGS_MAX: Final = 5
_LENGTH_BYTES: Final = 3
_FRAME_BYTES: Final = 25
_SURE_ERASURES: Final = 6  # From here on, what is corrected must be unclear.
_KEPT_S: Final = 5.5
_KEPT: Final = int(_KEPT_S * BAND_RATE_HZ / _COLUMN)
_TONES_HZ: Final = FIRST_TONE_HZ + TONE_STEP_HZ * np.arange(TONE_COUNT)
# A block has each tone in a bin of its own.
_BINS: Final = np.rint(_TONES_HZ * BLOCK / BAND_RATE_HZ).astype(np.intp) % BLOCK
_SIGNS: Final = 1 - 2 * (np.arange(MARKER_PAIRS) % 2)
_LETTERS: Final = frozenset(LETTERS.tolist())


class PowerSums:
    """The columns of powers of the last seconds of a stream, and the markers in them."""

    def __init__(self) -> None:
        self._pending: Band = np.zeros(0, np.complex64)
        self._columns: Powers = np.zeros((0, TONE_COUNT))
        self._gone: int = 0  # The number of columns dropped so far.
        self._contrasts: NDArray[np.float64] = np.zeros(_MARKER_WINDOWS + 2 * _SEARCH_COLUMNS - 1)
        self._marker_at: int = 0

    def feed(self, band: Band) -> list[Candidate]:
        """Return a candidate of each protocol for each marker that these samples complete.

        Their starts count from the first sample of the stream.
        """
        self._pending = np.concatenate([self._pending, band])
        count = (len(self._pending) - BLOCK) // _COLUMN + 1
        if count <= 0:
            return []
        windows = np.lib.stride_tricks.sliding_window_view(self._pending, BLOCK)[: count * _COLUMN : _COLUMN]
        powers = find_spectra(windows, BLOCK)[:, _BINS].astype(np.float64)
        self._pending = self._pending[count * _COLUMN :]
        self._columns = np.concatenate([self._columns, powers])
        surplus = max(0, len(self._columns) - _KEPT)
        self._columns = self._columns[surplus:]
        self._gone += surplus
        return list(self._find_markers(powers))

    def read(self, protocol: int, start: float) -> str | None:
        """Return the letters of the likeliest token around a start, counted from the first sample of the stream."""
        values, clarities = self._read_nibbles(GROUP_BLOCKS[protocol] * _COLUMNS_PER_BLOCK, round(start / _COLUMN))
        order = np.argsort(-clarities.sum(axis=1), kind="stable")[:_READINGS_MAX]
        tokens = (read_frame(values[each], clarities[each]) for each in order)
        return next((token for token in tokens if token is not None), None)

    def _read_nibbles(self, columns: int, start: int) -> tuple[NDArray[np.intp], Powers]:
        """Return the likeliest half bytes, and how much each stands out (0 to 1), of shape (17, 78), for each start."""
        sums = np.concatenate([np.zeros((1, TONE_COUNT)), np.cumsum(self._columns, axis=0)])
        first = start - self._gone + np.arange(-_SEARCH_COLUMNS, _SEARCH_COLUMNS + 1)[:, None]
        first = first + columns * np.arange(GROUPS)
        # Windows that lie in the group as a whole.
        last = np.clip(first + columns - _COLUMNS_PER_BLOCK + 1, 0, len(self._columns))
        powers = (sums[last] - sums[np.clip(first, 0, len(self._columns))]).reshape(len(first), -1, TONES)
        two = np.partition(powers, TONES - 2, axis=2)[:, :, TONES - 2 :]
        total = two.sum(axis=2)
        return powers.argmax(axis=2), (two[:, :, 1] - two[:, :, 0]) / np.where(total > 0, total, 1)

    def _find_markers(self, powers: Powers) -> Iterator[Candidate]:
        """Yield the candidates of each place whose contrast is the highest around."""
        known = len(self._contrasts)  # As many as show nothing new.
        self._contrasts = np.concatenate([self._contrasts, _find_contrasts(powers)])
        sums = np.concatenate([[0.0], np.cumsum(self._contrasts)])
        means = (sums[_MARKER_WINDOWS:] - sums[:-_MARKER_WINDOWS]) / _MARKER_WINDOWS
        around = np.lib.stride_tricks.sliding_window_view(means, 2 * _SEARCH_COLUMNS + 1)
        middle = means[_SEARCH_COLUMNS : len(means) - _SEARCH_COLUMNS]
        is_marker = np.where(middle > 0, middle >= around.max(axis=1), middle <= around.min(axis=1))
        # The column with which a marker ends, counted from the first of the stream.
        newest = self._gone + len(self._columns) - 1
        first = newest - _SEARCH_COLUMNS - len(middle) + 1
        for place in np.flatnonzero(is_marker & (np.abs(middle) >= _CONTRAST_MIN)):
            column = first + int(place)
            # Equal contrasts in a row, which only a hostile sound has, must not cost a reading each.
            if column >= self._marker_at + _SEARCH_COLUMNS:
                self._marker_at = column
                yield from _list_candidates(column - _MARKER_WINDOWS + 1, is_end=bool(middle[place] < 0))
        self._contrasts = self._contrasts[-known:]


def _list_candidates(begin: int, *, is_end: bool) -> Iterator[Candidate]:
    for protocol, blocks in GROUP_BLOCKS.items():
        offset = -GROUPS * blocks * _COLUMNS_PER_BLOCK if is_end else _MARKER_COLUMNS
        yield Candidate(protocol, float((begin + offset) * _COLUMN), 0.0, 0.0)


def _find_contrasts(powers: Powers) -> NDArray[np.float64]:
    """Return how well each column fits a marker, from -1 (its end) to 1: of each two tones, a marker has one."""
    pairs = powers[:, : 2 * MARKER_PAIRS].reshape(-1, MARKER_PAIRS, 2)
    total = pairs.sum(axis=2)
    contrasts: NDArray[np.float64] = (pairs[:, :, 0] - pairs[:, :, 1]) / np.where(total > 0, total, 1) @ _SIGNS
    return contrasts / MARKER_PAIRS


def read_frame(values: NDArray[np.intp], clarities: Powers) -> str | None:
    """Return the letters of the token that half bytes encode, or None."""
    codeword = slice(_LENGTH_BYTES, _LENGTH_BYTES + _FRAME_BYTES + CHECK_BYTES)
    received = (values[::2] | values[1::2] << 4)[codeword].astype(np.uint8).tobytes()
    clarity = np.minimum(clarities[::2], clarities[1::2])[codeword]
    least_clear = np.argsort(clarity, kind="stable").tolist()
    wrong = [place for place, byte in enumerate(PREFIX) if received[place] != byte]
    for erasure_count in range(0, CHECK_BYTES, 2):
        erased = least_clear[:erasure_count]
        # It can only be a frame if what is left can correct what is known to be wrong.
        if 2 * sum(place not in erased for place in wrong) + erasure_count > CHECK_BYTES:
            continue
        corrected = correct(received, CHECK_BYTES, erased)
        if corrected is None or not _is_frame(corrected):
            continue
        if erasure_count < _SURE_ERASURES or _is_sure(corrected, received, least_clear):
            return corrected[len(PREFIX) : _FRAME_BYTES].decode("ascii")
    return None


def _is_frame(corrected: bytes) -> bool:
    return corrected.startswith(PREFIX) and _LETTERS.issuperset(corrected[len(PREFIX) : _FRAME_BYTES])


def _is_sure(corrected: bytes, received: bytes, least_clear: list[int]) -> bool:
    """Return whether a correction changes only the least clear bytes.

    With eight erased, one error more fits one word in ten, so where it is has to speak for it.
    """
    return all(corrected[place] == received[place] for place in least_clear[CHECK_BYTES:])
