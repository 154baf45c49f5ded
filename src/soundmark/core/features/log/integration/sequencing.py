"""The only place where the tree grows: what waits is entered, and the new tree is signed, in one transaction."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.core.domain.log.checkpoint import Checkpoint, sign_checkpoint, verify_checkpoint
from soundmark.core.domain.log.entry import NotAnEntry, ReadEntry, code_entries, commit_issued, read_entry
from soundmark.core.domain.log.state import LogState, StoredCheckpoint
from soundmark.core.domain.log.tree import Edge, edge_tiles, hash_leaf
from soundmark.core.features.log.integration.keys import read_signers
from soundmark.core.store.codes import broadcasts
from soundmark.core.store.log import checkpoints, queue, state, tree
from soundmark.core.store.log.queue import Queued
from soundmark.kit.crypto.signed_notes import NotANote
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.timestamps import format_timestamp

# In one transaction: some 100 ms, for which the log's state is locked, and 4 MB.
ENTRIES_AT_ONCE: Final = 4096
_SHUFFLE_BYTES: Final = 8
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Integration:
    """What one transaction did: how many entries it added, and if more may wait."""

    added_count: int
    has_more: bool


class _TreeDamaged(Exception):
    """What is stored is not what was signed. The message says how, for an operator."""


async def integrate_some(ctx: Context) -> Integration:
    """Enter some `ENTRIES_AT_ONCE` of what waits, in random order, and sign the tree; stop if the tree is damaged.

    Everything that follows a crash is either as before or as after this transaction. Several processes take turns.

    Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken if the log's keys were sealed under another master key.
    """
    async with ctx.db.transaction() as tx:
        log = await state.lock(tx)
        if log is None or log.stopped_reason is not None:
            return Integration(0, has_more=False)
        try:
            edge = await _read_edge(tx, log)
        except (_TreeDamaged, KeyError, NotANote) as damage:
            _log.error("log_tree_damaged", size=log.size, detail=str(damage))
            await state.update_stopped(tx, "tree_damaged")
            return Integration(0, has_more=False)
        waiting = await queue.delete_oldest(tx, limit=ENTRIES_AT_ONCE)
        earlier, entered_token = await _list_earlier(tx, log)
        new = await _find_new(tx, [*make_entries(waiting), *earlier], size=log.size)
        if new:
            await _append(ctx, tx, log, edge, new)
        await state.update_grown(tx, size=log.size + len(new), entered_token=entered_token)
        is_full = sum(queued.count for queued in waiting) >= ENTRIES_AT_ONCE
        has_more = is_full or entered_token is not None
    return Integration(len(new), has_more)


async def _read_edge(tx: Tx, log: LogState) -> Edge:
    """Return the right edge of the stored tree, whose root is what the log signed last.

    Raises: _TreeDamaged; KeyError for a missing tile; NotANote for a checkpoint that the log did not sign.
    """
    edge = Edge.from_tiles(log.size, await tree.find_tiles(tx, edge_tiles(log.size)))
    newest = await checkpoints.find_newest(tx)
    if newest is None:
        if log.size:
            raise _TreeDamaged("its checkpoint is gone")
        return edge
    keys = [key.verifier(log.origin) for key in await state.list_keys(tx)]
    if verify_checkpoint(newest.note, keys).checkpoint != Checkpoint(log.origin, log.size, edge.root()):
        raise _TreeDamaged("its tiles do not lead to the root that was signed")
    return edge


async def _list_earlier(tx: Tx, log: LogState) -> tuple[list[ReadEntry], str | None]:
    """Return the entries of some Codes that were active when the log was made, and up to which token; None for all.

    A Code that was issued since has entered the log itself, and is found to be known. One that has ended since is
    entered: its revocation is in the log, or its owner saw it active.
    """
    if log.entered_token is None:
        return [], None
    found = await broadcasts.list_unrevoked(tx, at=log.created_at, after=log.entered_token, limit=ENTRIES_AT_ONCE)
    moment, entries = format_timestamp(log.created_at), list[ReadEntry]()
    for broadcast in found:
        facts = read_facts(broadcast.payload)
        if facts is not None and facts.expires_at > moment:  # Timestamps of this format sort chronologically.
            entries += code_entries("code.issued", commit_issued([broadcast]))
    return entries, found[-1].token if len(found) == ENTRIES_AT_ONCE else None


def make_entries(waiting: Iterable[Queued]) -> Iterator[ReadEntry]:
    """Yield the entries of what waits. What is none is dropped: somebody may have altered the queue."""
    for queued in waiting:
        try:
            if queued.kind == "entry":
                yield queued.content, read_entry(queued.content)
            else:
                yield from code_entries(queued.kind, queued.content)
        except NotAnEntry:
            _log.error("log_entry_malformed")


async def _find_new(tx: Tx, waiting: Iterable[ReadEntry], *, size: int) -> list[ReadEntry]:
    """Return the entries, each once, that the tree of `size` leaves lacks."""
    found = dict[bytes, ReadEntry]()
    for each in waiting:
        found.setdefault(each[1].digests[0], each)
    known = await tree.list_known(tx, list(found), size=size) if found else set()
    return [each for digest, each in found.items() if digest not in known]


async def _append(ctx: Context, tx: Tx, log: LogState, edge: Edge, new: list[ReadEntry]) -> None:
    # In random order: neighbours would tell which acts belong together.
    places = {data: ctx.entropy.take(_SHUFFLE_BYTES) for data, _ in new}
    new.sort(key=lambda each: places[each[0]])
    grown, changed = edge.grow([hash_leaf(data) for data, _ in new])
    now, root = ctx.clock.now(), grown.root()
    note = sign_checkpoint(Checkpoint(log.origin, grown.size, root), await read_signers(ctx, tx))
    # The first one is published without witnesses: there is always one, and they need it to know the log's key.
    is_published = log.size == 0 or ctx.transparency.quorum == 0
    await tree.insert_leaves(tx, log.size, new)
    await tree.insert_or_update_tiles(tx, changed)
    await checkpoints.insert(
        tx,
        StoredCheckpoint(
            size=grown.size,
            root=root,
            note=str(note),
            cosignatures="",
            signed_at=now,
            asked_at=None,
            published_at=now if is_published else None,
        ),
    )
    if is_published:
        await checkpoints.delete_older(tx, than=grown.size)
