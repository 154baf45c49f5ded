"""An auditor's examination of a whole log: every entry and hash, the root, and that the log has only grown."""

from collections.abc import Mapping, Sequence
from typing import Final

from soundmark.core.domain.log.checkpoint import Checkpoint
from soundmark.core.domain.log.entry import LogEntry, NotAnEntry, read_entry
from soundmark.core.domain.log.tree import HASH_BYTES, Edge, Tile, hash_leaf


class LogFault(Exception):
    """The log is not what it claims to be. The message names the first thing that is wrong."""


class LogAudit:
    """Examines the entries of one checkpoint in their order, whole bundles at a time.

    `known` is an older checkpoint that the log must extend. Memory grows by a hash for each entry, to find repetitions.
    """

    def __init__(self, checkpoint: Checkpoint, known: Checkpoint | None) -> None:
        """Raises: LogFault if the older checkpoint is of a larger tree or of another log."""
        if known is not None and known.origin != checkpoint.origin:
            raise LogFault(f"the log is {checkpoint.origin}, and was {known.origin}")
        if known is not None and known.size > checkpoint.size:
            raise LogFault(f"the log has {checkpoint.size} entries, and had {known.size}")
        self._checkpoint: Final = checkpoint
        self._known: Final = known
        self._edge = Edge(0, ())
        self._digests: Final = set[bytes]()
        self._require_known_root()

    @property
    def size(self) -> int:
        """The number of entries so far."""
        return self._edge.size

    def add(self, entries: Sequence[bytes]) -> tuple[list[LogEntry], Mapping[Tile, bytes]]:
        """Examine the next entries; return them as read, and the tiles that changed, as they are now.

        Raises: LogFault.
        """
        read = [self._read(self.size + number, data) for number, data in enumerate(entries)]
        changed: dict[Tile, bytes] = {}
        for part in self._split_at_known(entries):
            self._edge, tiles = self._edge.grow([hash_leaf(data) for data in part])
            changed |= tiles
            self._require_known_root()
        return read, changed

    def finish(self) -> None:
        """Compare the tree with the checkpoint.

        Raises: LogFault.
        """
        if self.size != self._checkpoint.size:
            raise LogFault(f"the log has {self.size} entries, and its checkpoint says {self._checkpoint.size}")
        if self._edge.root() != self._checkpoint.root:
            raise LogFault("the entries do not lead to the root of the checkpoint")

    def _read(self, position: int, data: bytes) -> LogEntry:
        try:
            entry = read_entry(data)
        except NotAnEntry:
            raise LogFault(f"entry {position} has no known form") from None
        if entry.digests[0] in self._digests:
            raise LogFault(f"entry {position} repeats an earlier one")
        self._digests.add(entry.digests[0])
        return entry

    def _split_at_known(self, entries: Sequence[bytes]) -> list[Sequence[bytes]]:
        """Return the entries in parts, so that one ends where the older checkpoint does."""
        end = -1 if self._known is None else self._known.size - self.size
        return [entries[:end], entries[end:]] if 0 < end < len(entries) else [entries]

    def _require_known_root(self) -> None:
        known = self._known
        if known is not None and self.size == known.size and self._edge.root() != known.root:
            raise LogFault(f"the first {known.size} entries are not those of the checkpoint that was known")


def require_tile(tile: Tile, expected: bytes, served: bytes) -> None:
    """Refuse a tile that is not what the entries make it.

    Raises: LogFault.
    """
    if served != expected:
        level, number = tile
        # What is only longer differs behind the last hash.
        at = next(
            at
            for at in range(0, len(expected) + 1, HASH_BYTES)
            if served[at : at + HASH_BYTES] != expected[at : at + HASH_BYTES]
        )
        raise LogFault(f"hash {at // HASH_BYTES} of tile {number} of level {level} is not that of the entries")
