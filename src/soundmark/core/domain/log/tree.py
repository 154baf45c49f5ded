"""The Merkle tree of RFC 6962, kept as tiles: hashes, proofs, and how a tree grows.

A node is `(height, index)`: the root of the perfect subtree over the leaves from `index << height`. A tile is
`(level, number)`: up to 256 nodes of height `8 * level`, each 32 bytes.

Source: RFC 6962, section 2.1; C2SP, tlog-tiles.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

HASH_BYTES: Final = 32
TILE_WIDTH: Final = 256
_TILE_HEIGHT: Final = 8
EMPTY_ROOT: Final = hashlib.sha256(b"").digest()

Node: TypeAlias = tuple[int, int]
Tile: TypeAlias = tuple[int, int]
Tiles: TypeAlias = Mapping[Tile, bytes]


def hash_leaf(entry: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\0" + entry).digest()


def hash_children(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return hashlib.sha256(b"\1" + left + right).digest()


@dataclass(frozen=True, slots=True)
class Edge:
    """The right edge of a tree of `size` leaves: of each level, the hashes of its tile that is not full yet."""

    size: int
    partial: tuple[bytes, ...]

    @classmethod
    def from_tiles(cls, size: int, tiles: Tiles) -> "Edge":
        """Return the edge of the tree of this size, from tiles that may hold more.

        Raises: KeyError for a tile of `edge_tiles` that is missing.
        """
        partial = []
        for level in range(_levels(size)):
            width = (size >> _TILE_HEIGHT * level) % TILE_WIDTH
            number = size >> _TILE_HEIGHT * (level + 1)
            partial.append(tiles[level, number][: width * HASH_BYTES] if width else b"")
        return cls(size, tuple(partial))

    def root(self) -> bytes:
        """Return the root of the tree."""
        # The perfect subtrees, from the smallest, which is the rightmost, to the largest.
        folded: bytes | None = None
        for hashes in self.partial:
            for subtree in reversed(_perfect_roots(_split(hashes))):
                folded = subtree if folded is None else hash_children(subtree, folded)
        return EMPTY_ROOT if folded is None else folded

    def grow(self, leaves: Sequence[bytes]) -> tuple["Edge", dict[Tile, bytes]]:
        """Append leaves, given as hashes; return the new edge, and every tile that changed, as it is now."""
        partial, changed = list(self.partial), dict[Tile, bytes]()
        level, added = 0, list(leaves)
        while added:
            if level == len(partial):
                partial.append(b"")
            first = self.size >> _TILE_HEIGHT * (level + 1)
            hashes = partial[level] + b"".join(added)
            tile_bytes = TILE_WIDTH * HASH_BYTES
            tiles = [hashes[at : at + tile_bytes] for at in range(0, len(hashes), tile_bytes)]
            changed |= {(level, first + number): tile for number, tile in enumerate(tiles)}
            added = [_fold_perfect(_split(tile)) for tile in tiles if len(tile) == tile_bytes]
            partial[level] = b"" if len(tiles) == len(added) else tiles[-1]
            level += 1
        return Edge(self.size + len(leaves), tuple(partial)), changed


def edge_tiles(size: int) -> list[Tile]:
    """Return the tiles that `Edge.from_tiles` reads."""
    return [
        (level, size >> _TILE_HEIGHT * (level + 1))
        for level in range(_levels(size))
        if (size >> _TILE_HEIGHT * level) % TILE_WIDTH
    ]


def tile_width(size: int, level: int, number: int) -> int:
    """Return how many hashes a tile has in the tree of this size, 0 if it is not there."""
    return max(0, min(TILE_WIDTH, (size >> _TILE_HEIGHT * level) - number * TILE_WIDTH))


@dataclass(frozen=True, slots=True)
class ProofPlan:
    """A proof before its hashes are read: each is folded from perfect subtrees, which are listed left to right."""

    nodes: tuple[tuple[Node, ...], ...]

    def tiles(self) -> set[Tile]:
        """Return the tiles that `read` needs."""
        return {_tile_of(node) for nodes in self.nodes for node in nodes}

    def read(self, tiles: Tiles) -> list[bytes]:
        """Return the hashes of the proof.

        Raises: KeyError for a missing tile; ValueError for one that is too short.
        """
        return [_fold(_node_hash(node, tiles) for node in nodes) for nodes in self.nodes]


def plan_inclusion(index: int, size: int) -> ProofPlan:
    """Return the plan of the proof that the tree of `size` leaves has this one."""
    assert 0 <= index < size, "a leaf of the tree"
    siblings, start, end = list[tuple[Node, ...]](), 0, size
    while end - start > 1:
        middle = start + _split_size(end - start)
        if index < middle:
            siblings.append(_perfect_nodes(middle, end))
            end = middle
        else:
            siblings.append(_perfect_nodes(start, middle))
            start = middle
    return ProofPlan(tuple(reversed(siblings)))


def plan_consistency(old_size: int, size: int) -> ProofPlan:
    """Return the plan of the proof that the first `old_size` leaves of the tree are the older tree."""
    assert 0 <= old_size <= size, "an older tree is smaller"
    if old_size in {0, size}:
        return ProofPlan(())
    siblings, start, end = list[tuple[Node, ...]](), 0, size
    while old_size != end:
        middle = start + _split_size(end - start)
        if old_size <= middle:
            siblings.append(_perfect_nodes(middle, end))
            end = middle
        else:
            siblings.append(_perfect_nodes(start, middle))
            start = middle
    if start:  # Otherwise it is the root of the older tree, which the verifier knows.
        siblings.append(_perfect_nodes(start, end))
    return ProofPlan(tuple(reversed(siblings)))


def extends(old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether the proof shows that a tree begins with the older one.

    Source: RFC 9162, section 2.1.4.2.
    """
    if old_size in {0, size}:
        return not proof and old_root == (root if old_size == size else EMPTY_ROOT) and size >= 0
    if not 0 < old_size < size:
        return False
    first, *rest = (old_root, *proof) if old_size & (old_size - 1) == 0 else proof or (b"",)
    place, last = old_size - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    sides = _sides(place, last, len(rest))
    if sides is None:
        return False
    # The older tree has only what stands to the left.
    of_old = [each for each, is_left in zip(rest, sides, strict=True) if is_left]
    is_older = _climb(first, of_old, [True] * len(of_old)) == old_root
    return is_older and _climb(first, rest, sides) == root


def _sides(place: int, last: int, count: int) -> list[bool] | None:
    """Return which siblings stand to the left, on the way from the node at `place` of `last + 1` up to the root.

    Return None if there are not `count` of them.
    """
    sides = []
    for _ in range(count):
        if last == 0:
            return None
        is_left = place & 1 == 1 or place == last
        sides.append(is_left)
        while is_left and place and not place & 1:
            place, last = place >> 1, last >> 1
        place, last = place >> 1, last >> 1
    return sides if last == 0 else None


def _climb(node: bytes, siblings: Sequence[bytes], sides: Sequence[bool]) -> bytes:
    for sibling, is_left in zip(siblings, sides, strict=True):
        node = hash_children(sibling, node) if is_left else hash_children(node, sibling)
    return node


def plan_root(size: int) -> ProofPlan:
    """Return the plan whose one hash is the root of the tree of `size` leaves, which is not empty."""
    return ProofPlan((_perfect_nodes(0, size),))


def _levels(size: int) -> int:
    return -(-size.bit_length() // _TILE_HEIGHT)


def _split_size(count: int) -> int:
    """Return the largest power of two below `count`."""
    return 1 << (count - 1).bit_length() - 1


def _perfect_nodes(start: int, end: int) -> tuple[Node, ...]:
    """Return the perfect subtrees of the leaves from `start`, where one of them may begin, to `end`."""
    nodes = []
    while start < end:
        height = (end - start).bit_length() - 1
        nodes.append((height, start >> height))
        start += 1 << height
    return tuple(nodes)


def _tile_of(node: Node) -> Tile:
    height, index = node
    return height // _TILE_HEIGHT, (index << height % _TILE_HEIGHT) // TILE_WIDTH


def _node_hash(node: Node, tiles: Tiles) -> bytes:
    height, index = node
    count = 1 << height % _TILE_HEIGHT
    at = index * count % TILE_WIDTH
    hashes = tiles[_tile_of(node)][at * HASH_BYTES : (at + count) * HASH_BYTES]
    if len(hashes) != count * HASH_BYTES:
        raise ValueError("the tile is too short")
    return _fold_perfect(_split(hashes))


def _split(hashes: bytes) -> list[bytes]:
    return [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]


def _fold_perfect(hashes: list[bytes]) -> bytes:
    while len(hashes) > 1:
        hashes = [hash_children(hashes[at], hashes[at + 1]) for at in range(0, len(hashes), 2)]
    return hashes[0]


def _perfect_roots(hashes: list[bytes]) -> list[bytes]:
    """Return the roots of the perfect subtrees over these neighbours, left to right."""
    return [
        _fold_perfect(hashes[index << height : (index + 1) << height])
        for height, index in _perfect_nodes(0, len(hashes))
    ]


def _fold(roots: Iterable[bytes]) -> bytes:
    *others, folded = roots
    for each in reversed(others):
        folded = hash_children(each, folded)
    return folded
