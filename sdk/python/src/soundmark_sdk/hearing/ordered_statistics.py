"""Find the likeliest frame: ordered-statistics decoding of the Reed–Solomon code over its bytes.

Any 16 of the 26 unknown bytes determine the others. The clearest 16 are believed, and then changed in up to four
places, the least unlikely changes first. Sets that leave out some of the clearest find what one wrong byte hides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from soundmark_sdk.hearing.frame_code import (
    CHECK_BYTES,
    CODE_BASE,
    CODE_ROWS,
    PRODUCTS,
    TOKEN_BYTES,
    UNKNOWN_BYTES,
    Bytes,
    invert,
    multiply,
)

Bits: TypeAlias = NDArray[np.float64]

# The clearest bytes that each set believes, by rank.
_SETS: Final = tuple(
    np.array([*first, *second])
    for first, second in (
        (range(16), ()),
        (range(12), range(16, 20)),
        (range(4, 20), ()),
        (range(8), range(12, 20)),
        (range(4), range(8, 20)),
        (range(14), range(20, 22)),
        (range(2, 18), ()),
        (range(10), range(16, 22)),
    )
)
SETS_MAX: Final = len(_SETS)
_CHANGES_MAX: Final = 256  # Of one byte.
_PAIRS_MAX: Final = 16_000
_TARGETS: Final = 12  # Likely values of the two clearest bytes that are not believed.
IMPOSSIBLE_BITS: Final = -60.0
_PAIRS: Final = np.triu_indices(_CHANGES_MAX, 1)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The unknown bytes of a frame, and the evidence for them in bits."""

    content: Bytes
    evidence_bits: float

    @property
    def token_text(self) -> str:
        """The token's letters after `brd_`."""
        return self.content[:TOKEN_BYTES].tobytes().decode("ascii")


def decode(evidence: Bits, *, enough_bits: float, sets_count: int = SETS_MAX) -> tuple[Decoded | None, int]:
    """Return the likeliest frame that was found, and the number of sets that were tried.

    `evidence` has the shape (26, 256): how many bits speak for each value of each unknown byte. A frame with
    `enough_bits` ends the search.
    """
    best = evidence.max(axis=1)
    clarity = -np.log2(np.exp2(evidence - best[:, None]).sum(axis=1))
    order = np.argsort(-clarity, kind="stable")
    found: Decoded | None = None
    for count, ranks in enumerate(_SETS[:sets_count], 1):
        for candidate in _Reprocessing(evidence, order[ranks], order).candidates():
            if found is None or candidate.evidence_bits > found.evidence_bits:
                found = candidate
            if found.evidence_bits >= enough_bits:
                return found, count
    return found, sets_count


class _Reprocessing:
    """The changes of one set of believed bytes."""

    def __init__(self, evidence: Bits, believed: NDArray[np.intp], order: NDArray[np.intp]) -> None:
        self._evidence: Final = evidence
        self._believed: Final = believed
        self._rest: Final = order[~np.isin(order, believed)]
        effects = multiply(invert(CODE_ROWS[:, believed]), CODE_ROWS[:, self._rest])
        self._hard: Final = evidence[believed].argmax(axis=1).astype(np.uint8)
        self._hard_bits: Final = float(evidence[believed, self._hard].sum())
        start = multiply((self._hard ^ CODE_BASE[believed])[None], effects)[0]
        self._start: Final[Bytes] = start ^ CODE_BASE[self._rest]
        self._rest_evidence: Final = evidence[self._rest].astype(np.float32)
        # Two bytes are looked up at once, as one number of 16 bits: the second is its upper half.
        pairs = self._rest_evidence.reshape(-1, 2, 256)
        self._pair_evidence: Final = (pairs[:, 1, :, None] + pairs[:, 0, None, :]).reshape(len(pairs), -1)
        self._list_changes(effects)

    def _list_changes(self, effects: Bytes) -> None:
        """List no change, the least unlikely changes of one byte, and pairs of them."""
        hard = self._hard
        losses = self._evidence[self._believed, hard][:, None] - self._evidence[self._believed]
        losses[np.arange(TOKEN_BYTES), hard] = np.inf
        chosen = np.argpartition(losses, _CHANGES_MAX, axis=None)[:_CHANGES_MAX]
        chosen = chosen[losses.ravel()[chosen] < -IMPOSSIBLE_BITS - 10]
        self._places, values = np.divmod(chosen, 256)
        self._deltas = values.astype(np.uint8) ^ hard[self._places]
        single_losses = losses.ravel()[chosen]
        single_effects = PRODUCTS[self._deltas[:, None], effects[self._places]]
        first, second = _PAIRS if len(chosen) == _CHANGES_MAX else np.triu_indices(len(chosen), 1)
        pair_losses = single_losses[first] + single_losses[second]
        apart = self._places[first] != self._places[second]
        first, second, pair_losses = first[apart], second[apart], pair_losses[apart]
        if len(pair_losses) > _PAIRS_MAX:
            kept = np.argpartition(pair_losses, _PAIRS_MAX)[:_PAIRS_MAX]
            first, second, pair_losses = first[kept], second[kept], pair_losses[kept]
        alone, none = np.arange(len(chosen)), np.full(len(chosen), -1)
        self._first = np.concatenate([[-1], alone, first])
        self._second = np.concatenate([[-1], none, second])
        self._losses = np.concatenate([[0.0], single_losses, pair_losses])
        self._effects = np.concatenate(
            [np.zeros((1, CHECK_BYTES), np.uint8), single_effects, single_effects[first] ^ single_effects[second]]
        )
        self._pair_effects = np.ascontiguousarray(self._effects.view("<u2").T)

    def candidates(self) -> Iterator[Decoded]:
        """Yield frames with up to two changes, then those with up to four: pairs that meet in two likely bytes."""
        everything = np.arange(len(self._losses))
        yield from self._judge(everything, np.zeros_like(everything))
        keys = self._pair_effects[0]
        # The patterns in the order of their keys, and where those of each key begin.
        order = np.argsort(keys, kind="stable")
        counts = np.bincount(keys, minlength=1 << 16)
        firsts = np.cumsum(counts) - counts
        start = int(self._start.view("<u2")[0])
        together = self._pair_evidence[0]
        targets = np.argpartition(-together, _TARGETS)[:_TARGETS]
        for target in targets[np.argsort(-together[targets])]:
            wanted = keys ^ np.uint16(int(target) ^ start)
            matches = counts.take(wanted)
            matched = np.flatnonzero(matches)
            matches = matches[matched]
            # One number for each match: its place among those of its key.
            offsets = firsts.take(wanted[matched]) - np.cumsum(matches) + matches
            left = np.repeat(matched, matches)
            right = order.take(np.arange(len(left)) + np.repeat(offsets, matches))
            once = np.flatnonzero(right > left)
            if len(once):
                yield from self._judge(left[once], right[once])

    def _judge(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> Iterator[Decoded]:
        """Yield the likeliest of the frames with the changes `left` and `right` together."""
        bits = self._hard_bits - self._losses.take(left) - self._losses.take(right)
        starts = self._start.view("<u2")
        for evidence, effects, start in zip(self._pair_evidence, self._pair_effects, starts, strict=True):
            bits += evidence.take(effects.take(left) ^ effects.take(right) ^ start)
        for place in np.argpartition(-bits, min(3, len(bits) - 1))[:3]:
            changes = np.array([self._first[left[place]], self._second[left[place]], *self._other(right[place])])
            changes = changes[changes >= 0]
            if len(set(self._places[changes])) < len(changes) or bits[place] < 0:
                continue
            believed = self._hard.copy()
            believed[self._places[changes]] ^= self._deltas[changes]
            content = np.zeros(UNKNOWN_BYTES, np.uint8)
            rest = self._effects[left[place]] ^ self._effects[right[place]] ^ self._start
            content[self._believed], content[self._rest] = believed, rest
            if self._evidence[np.arange(UNKNOWN_BYTES), content].min() > IMPOSSIBLE_BITS + 10:
                yield Decoded(content, float(bits[place]))

    def _other(self, change: int) -> tuple[int, int]:
        return int(self._first[change]), int(self._second[change])
