"""Trees and tiles: they grow, and prove, as those of an independent implementation."""

import random
from collections.abc import Callable

import pytest
from support.log.independent import tlog

from soundmark.core.domain.log import tree
from soundmark.core.domain.log.tiles import TileRequest, format_path, parse_path, read_bundle, write_bundle
from soundmark.core.domain.log.tree import Edge, Tile

SIZE = 66_000  # Three levels of tiles.


class GrownTree:
    """A tree that grew in steps, its tiles, and the same tree as others make it."""

    def __init__(self, steps: Callable[[], int]) -> None:
        self.leaves = [number.to_bytes(4, "big") for number in range(SIZE)]
        self.theirs = tlog.MerkleTree(self.leaves)
        self.tiles: dict[Tile, bytes] = {}
        self.edge = Edge(0, ())
        while self.edge.size < SIZE:
            added = self.leaves[self.edge.size : self.edge.size + steps()]
            self.edge, changed = self.edge.grow([tree.hash_leaf(leaf) for leaf in added])
            self.tiles |= changed


@pytest.fixture(scope="module")
def grown() -> GrownTree:
    """A tree that grew in steps around the width of a tile."""
    chance = random.Random(1)  # noqa: S311 - repeatable
    return GrownTree(lambda: chance.choice([1, 2, 255, 256, 257, 511, 2000]))


def test_a_tree_that_grows_in_steps_has_the_root_of_all_its_leaves(grown: GrownTree) -> None:
    assert grown.edge.root() == grown.theirs.root()
    assert Edge(0, ()).root() == tlog.EMPTY_HASH


def test_the_edge_of_every_size_is_read_from_the_tiles_of_a_larger_tree(grown: GrownTree) -> None:
    for size in [*range(1, 600, 7), 255, 256, 257, 65_535, 65_536, 65_537, SIZE]:
        edge = Edge.from_tiles(size, {tile: grown.tiles[tile] for tile in tree.edge_tiles(size)})
        assert edge.root() == grown.theirs.root(size), size


def test_every_tile_is_what_others_make_of_the_leaves(grown: GrownTree) -> None:
    made = tlog.tiles.materialise_tiles(grown.leaves)
    widths = {tile: tree.tile_width(SIZE, *tile) for tile in grown.tiles}
    ours = {
        "tile/" + format_path(TileRequest(level, number, widths[level, number])): hashes
        for (level, number), hashes in grown.tiles.items()
    }
    assert {path: data for path, data in made.items() if "/entries/" not in path} == ours


def test_proofs_are_those_of_others_and_verify(grown: GrownTree) -> None:
    chance = random.Random(2)  # noqa: S311 - repeatable
    for _ in range(40):
        size = chance.choice([chance.randint(1, 600), chance.randint(1, SIZE)])
        index, old_size = chance.randrange(size), chance.randint(1, size)
        root, old_root = grown.theirs.root(size), grown.theirs.root(old_size)
        plan = tree.plan_inclusion(index, size)
        proof = plan.read({tile: grown.tiles[tile] for tile in plan.tiles()})
        assert proof == grown.theirs.inclusion_proof(index, size)
        plan = tree.plan_consistency(old_size, size)
        proof = plan.read({tile: grown.tiles[tile] for tile in plan.tiles()})
        assert proof == grown.theirs.consistency_proof(old_size, size)
        assert tree.extends(old_size, old_root, size, root, proof)


def test_an_altered_proof_verifies_nothing(grown: GrownTree) -> None:
    """Every hash, size and root counts, and so does the number of hashes."""
    old_size, size = 513, 1000
    root, old_root = grown.theirs.root(size), grown.theirs.root(old_size)
    growth = tree.plan_consistency(old_size, size).read(grown.tiles)
    for at in range(len(growth)):
        altered = [*growth[:at], bytes(32), *growth[at + 1 :]]
        assert not tree.extends(old_size, old_root, size, root, altered)
    assert not tree.extends(old_size, root, size, root, growth)
    assert not tree.extends(old_size - 1, old_root, size, root, growth)
    assert not tree.extends(old_size, old_root, size, old_root, growth)
    assert not tree.extends(size, root, old_size, old_root, growth)
    assert not tree.extends(old_size, old_root, size, root, [])
    assert not tree.extends(0, root, size, root, [])
    assert not tree.extends(size, old_root, size, root, [])


def test_a_short_tile_is_noticed_when_a_proof_is_read(grown: GrownTree) -> None:
    with pytest.raises(ValueError, match="too short"):
        tree.plan_inclusion(2, 256).read({(0, 0): grown.tiles[0, 0][:64]})


def test_paths_are_those_of_others(subtests: pytest.Subtests) -> None:
    for number in (0, 1, 999, 1000, 1_234_067, 10**9):
        for width in (1, 255, 256):
            for level in (None, 0, 5, 63):
                request, partial = TileRequest(level, number, width), width if width < 256 else None
                path = (
                    tlog.tiles.entry_bundle_path(number, partial)
                    if level is None
                    else tlog.tiles.tile_path(level, number, partial)
                )
                with subtests.test(path):
                    assert "tile/" + format_path(request) == path
                    assert parse_path(format_path(request)) == request


def test_a_path_in_another_spelling_names_nothing(subtests: pytest.Subtests) -> None:
    levels = ["64/000", "00/000", "-1/000", "data/000", "0", "0/"]
    numbers = ["0/0", "0/1000", "0/x000/001", "0/000/001", "0/x001/x002", "0/X001/000", "entries/x1/000"]
    widths = ["0/000.p/256", "0/000.p/0", "0/000.p/01", "0/000.p/"]
    for path in (
        *levels,
        *numbers,
        *widths,
        "0/000\n",
        "0/000 ",
        "0/\u0660\u0660\u0660",
        "entries/" + "x999/" * 6 + "999",
        "0/" + "x001/" * 1500 + "001",
    ):
        with subtests.test(path):
            assert parse_path(path) is None


def test_a_tree_may_end_with_a_whole_tile() -> None:
    leaves = [tree.hash_leaf(number.to_bytes(2, "big")) for number in range(600)]
    begun, _ = Edge(0, ()).grow(leaves[:256])
    assert begun.root() == tlog.MerkleTree([number.to_bytes(2, "big") for number in range(256)]).root()
    assert begun.grow(leaves[256:])[0] == Edge(0, ()).grow(leaves)[0]


def test_a_small_tree_extends_each_of_its_beginnings_and_nothing_else() -> None:
    leaves = [tree.hash_leaf(bytes([number])) for number in range(20)]
    roots = [Edge(0, ()).grow(leaves[:size])[0].root() for size in range(21)]
    for size in range(21):
        _, tiles = Edge(0, ()).grow(leaves[:size])
        assert not size or tree.plan_root(size).read(tiles) == [roots[size]]
        for old in range(size + 1):
            proof = tree.plan_consistency(old, size).read(tiles)
            assert tree.extends(old, roots[old], size, roots[size], proof)
            wrong = bytes(32)
            assert not tree.extends(old, wrong, size, roots[size], proof)
            assert old == 0 or not tree.extends(old, roots[old], size, wrong, proof)
            assert not tree.extends(old, roots[old], size, roots[size], [*proof, wrong])
            assert not proof or not tree.extends(old, roots[old], size, roots[size], proof[:-1])
    assert not tree.extends(6, roots[6], 5, roots[5], [])
    assert not tree.extends(-1, roots[5], -1, roots[5], [])


def test_tiles_are_numbered_as_far_as_a_log_can_grow() -> None:
    last = TileRequest(0, 2**55, 256)
    assert parse_path(format_path(last)) == last
    assert parse_path(format_path(last._replace(number=2**55 + 1))) is None


def test_a_bundle_is_read_by_others_and_back() -> None:
    entries = [b"", b"one", b"x" * 65_535, b""]
    assert tlog.tiles.parse_entry_bundle(write_bundle(entries)) == entries
    assert read_bundle(write_bundle(entries)) == entries
    for cut in (1, 3, 6, 12):
        with pytest.raises(ValueError, match="ends within"):
            read_bundle(write_bundle(entries)[:-cut])
