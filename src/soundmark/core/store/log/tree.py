"""The tables `log_leaves` and `log_tiles`."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from soundmark.core.domain.log.entry import ReadEntry
from soundmark.core.domain.log.tree import Tile
from soundmark.kit.postgres.arrays import bytes_array, plain_array
from soundmark.kit.postgres.transaction import Tx


class Leaf(NamedTuple):
    """An entry, and its place in the tree."""

    position: int
    entry: bytes


async def insert_leaves(tx: Tx, first: int, leaves: Sequence[ReadEntry]) -> None:
    """Insert entries at the positions from `first`."""
    await tx.copy(
        "COPY log_leaves (position, entry, digest, answer) FROM STDIN (FORMAT BINARY)",
        ("bigint", "bytea", "bytea", "bytea"),
        (
            (position, data, entry.digests[0], entry.digests[1] if len(entry.digests) > 1 else None)
            for position, (data, entry) in enumerate(leaves, first)
        ),
    )


async def list_known(tx: Tx, digests: Sequence[bytes], *, size: int) -> set[bytes]:
    """Return those of the digests, each the first of its entry, whose entries are among the first `size` leaves."""
    rows = await tx.rows(
        "SELECT digest, position FROM log_leaves WHERE digest = ANY(%(digests)s::bytea[])",
        {"digests": bytes_array(digests)},
    )
    return {digest for digest, position in rows if position < size}


async def find_leaf(tx: Tx, digest: bytes, *, size: int) -> Leaf | None:
    """Return the leaf with this digest, of either commitment, among the first `size`."""
    # Positions are compared here: PostgreSQL might read all leaves by their position instead of one by its digest.
    rows = await tx.rows(
        """
        SELECT position, entry
          FROM log_leaves
         WHERE digest = %(digest)s OR answer = %(digest)s
        """,
        {"digest": digest},
    )
    return next((leaf for leaf in map(Leaf._make, rows) if leaf.position < size), None)


async def list_entries(tx: Tx, *, first: int, count: int) -> list[bytes]:
    """Return `count` entries from this position on, or as many as there are."""
    rows = await tx.rows(
        """
        SELECT entry
          FROM log_leaves
         WHERE position >= %(first)s
           AND position < %(first)s + %(count)s::bigint
         ORDER BY position
        """,
        {"first": first, "count": count},
    )
    return [row[0] for row in rows]


async def insert_or_update_tiles(tx: Tx, tiles: Mapping[Tile, bytes]) -> None:
    """Store tiles that are new or have grown."""
    await tx.run(
        """
        INSERT INTO log_tiles (level, number, hashes)
        SELECT level, number, hashes
          FROM unnest(%(levels)s::int[], %(numbers)s::bigint[], %(hashes)s::bytea[]) AS tile (level, number, hashes)
            ON CONFLICT (level, number) DO UPDATE SET hashes = excluded.hashes
        """,
        {
            "levels": plain_array(level for level, _ in tiles),
            "numbers": plain_array(number for _, number in tiles),
            "hashes": bytes_array(tiles.values()),
        },
    )


async def find_tiles(tx: Tx, tiles: Collection[Tile]) -> dict[Tile, bytes]:
    """Return those of the tiles that exist, which may have grown beyond any size that was published."""
    rows = await tx.rows(
        """
        SELECT level, number, hashes
          FROM log_tiles
          JOIN unnest(%(levels)s::int[], %(numbers)s::bigint[]) AS wanted (level, number) USING (level, number)
        """,
        {
            "levels": plain_array(level for level, _ in tiles),
            "numbers": plain_array(number for _, number in tiles),
        },
    )
    return {(level, number): hashes for level, number, hashes in rows}
