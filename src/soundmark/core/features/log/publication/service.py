"""Reading what is published of the log. What is in the tree and in no published checkpoint is not shown."""

from dataclasses import dataclass

from soundmark.core.context import RequestContext
from soundmark.core.domain.log.checkpoint import write_proof
from soundmark.core.domain.log.entry import DIGEST_BYTES
from soundmark.core.domain.log.state import LogState, StoredCheckpoint
from soundmark.core.domain.log.tiles import TileRequest, write_bundle
from soundmark.core.domain.log.tree import HASH_BYTES, TILE_WIDTH, plan_inclusion, tile_width
from soundmark.core.store.log import checkpoints, state, tree
from soundmark.kit.crypto.signed_notes import VerifierKey
from soundmark.kit.http.responses.problems import NotFound
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text import base64url


@dataclass(frozen=True, slots=True)
class PublishedLog:
    """The log, its newest published checkpoint, and the keys that sign, newest first."""

    log: LogState
    published: StoredCheckpoint
    keys: tuple[VerifierKey, ...]


async def read_log(ctx: RequestContext) -> PublishedLog:
    """Return what the log says of itself.

    Raises: NotFound before there is one.
    """
    async with ctx.db.snapshot() as tx:
        log, published = await state.find(tx), await _get_published(tx)
        keys = await state.list_keys(tx)
    if log is None:
        raise NotFound
    return PublishedLog(log, published, tuple(key.verifier(log.origin) for key in keys if key.retired_at is None))


async def read_checkpoint(ctx: RequestContext) -> str:
    """Return the newest published checkpoint.

    Raises: NotFound before there is one.
    """
    async with ctx.db.transaction() as tx:
        return (await _get_published(tx)).text


async def read_tile(ctx: RequestContext, request: TileRequest) -> bytes:
    """Return a tile or bundle, or the beginning of one, also of one that is full by now.

    Raises: NotFound for more than what is published.
    """
    level, number, width = request
    async with ctx.db.snapshot() as tx:
        published = await _get_published(tx)
        if width > tile_width(published.size, level or 0, number):
            raise NotFound
        if level is None:
            return write_bundle(await tree.list_entries(tx, first=number * TILE_WIDTH, count=width))
        tiles = await tree.find_tiles(tx, [(level, number)])
    return tiles[level, number][: width * HASH_BYTES]


async def find_proof(ctx: RequestContext, text: str) -> str | None:
    """Return the proof of the entry with this digest, in base64url, against the newest published checkpoint.

    None for a digest that is malformed, unknown, or not published yet.
    """
    try:
        digest = base64url.decode(text)
    except ValueError:
        return None
    if len(digest) != DIGEST_BYTES:
        return None
    async with ctx.db.snapshot() as tx:
        published = await checkpoints.find_published(tx)
        leaf = None if published is None else await tree.find_leaf(tx, digest, size=published.size)
        if published is None or leaf is None:
            return None
        plan = plan_inclusion(leaf.position, published.size)
        hashes = plan.read(await tree.find_tiles(tx, plan.tiles()))
    return write_proof(leaf.entry, leaf.position, hashes, published.text)


async def _get_published(tx: Tx) -> StoredCheckpoint:
    """Raises: NotFound before there is one."""
    published = await checkpoints.find_published(tx)
    if published is None:
        raise NotFound
    return published
