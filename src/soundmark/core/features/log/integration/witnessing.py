"""Asking witnesses to cosign the newest checkpoint, and publishing it once enough of them have.

A checkpoint is stored before it is sent to anybody. If the process dies later, the next one sends
the same bytes again, which every witness cosigns again.
"""

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.log.checkpoint import Checkpoint, count_cosignatures, verify_checkpoint
from soundmark.core.domain.log.state import StoredCheckpoint, Witness
from soundmark.core.domain.log.tree import EMPTY_ROOT, plan_consistency, plan_root
from soundmark.core.providers.witnesses import ANSWER_TIMEOUT_S, WitnessAbsent, WitnessIsElsewhere, WitnessSawAnother
from soundmark.core.store.log import checkpoints, state, tree
from soundmark.kit.crypto.signed_notes import NotANote, NoteSignature
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.transaction import Tx

# Another process may be asking; so long one of ours may take, with two requests to a slow witness.
_ASKED_FOR: Final = timedelta(seconds=2 * ANSWER_TIMEOUT_S)
_ATTEMPTS: Final = 3  # The witness says where it is, and may be elsewhere again when we come back.
_log: Final = structlog.get_logger()


class Witnesses:
    """Asks all witnesses at once, each in a task of its own, so that a slow one delays nobody who does not need it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx: Final = ctx
        self._sizes: Final[dict[str, int]] = {}  # What each has cosigned, by URL, as far as we know.
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._absent: Final[set[str]] = set()  # Each is reported once.

    async def ask_about_newest(self) -> bool:
        """Ask those that have not cosigned the newest checkpoint; return whether one is still missing afterwards.

        Wait until a quorum has cosigned it, or everybody has answered; the others go on in the background.

        Raises: DatabaseUnavailable.
        """
        newest, is_taken = await self._claim()
        if newest is None or is_taken:
            return is_taken
        missing = newest.lacks(self._ctx.transparency.witnesses)
        asked = [asyncio.create_task(self._ask(witness, newest)) for witness in missing]
        self._tasks.update(asked)
        pending = set(asked)
        while pending and not await self._is_published(newest.size):
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            self._tasks.difference_update(done)
        for task in pending:
            task.add_done_callback(self._tasks.discard)
        return await self._is_missing(newest.size)

    async def finish(self) -> None:
        """Wait until nobody is being asked."""
        while self._tasks:
            await asyncio.wait(self._tasks)
            self._tasks.difference_update({task for task in self._tasks if task.done()})

    async def cancel(self) -> None:
        """Stop asking."""
        for task in self._tasks:
            task.cancel()
        await self.finish()

    async def confirm_restored(self) -> bool:
        """Let a log go on that was restored, if every witness cosigns its newest checkpoint; return whether it does.

        Raises: DatabaseUnavailable.
        """
        witnesses = self._ctx.transparency.witnesses
        async with self._ctx.db.transaction() as tx:
            newest = await checkpoints.find_newest(tx)
        if newest is None or not witnesses:
            return False
        answers = await asyncio.gather(*(self._find_cosignature(witness, newest) for witness in witnesses))
        if any(answer is None for answer in answers):
            return False
        async with self._ctx.db.transaction() as tx:
            log = await state.lock(tx)
            if log is None or log.stopped_reason != "restored":
                return False
            await state.update_stopped(tx, None)
        _log.warning("log_restored", size=newest.size)
        return True

    async def _claim(self) -> tuple[StoredCheckpoint | None, bool]:
        """Return the newest checkpoint if a witness has not cosigned it, and whether another process is asking."""
        ctx = self._ctx
        if not ctx.transparency.witnesses:
            return None, False
        async with ctx.db.transaction() as tx:
            log = await state.lock(tx)
            newest = await checkpoints.find_newest(tx)
            now = ctx.clock.now()
            is_going_on = log is not None and log.stopped_reason is None
            if not is_going_on or newest is None or not newest.lacks(ctx.transparency.witnesses):
                return None, False
            is_taken = newest.asked_at is not None and newest.asked_at <= now < newest.asked_at + _ASKED_FOR
            if not is_taken:
                await checkpoints.update_asked(tx, newest.size, now=now)
        return newest, is_taken

    async def _ask(self, witness: Witness, newest: StoredCheckpoint) -> None:
        try:
            cosignature = await self._find_cosignature(witness, newest)
            if cosignature is not None:
                await self._store(newest.size, cosignature)
        except DatabaseUnavailable:
            pass  # The loop finds it too, and asks again.
        except Exception as error:  # noqa: BLE001 - one witness must not keep the others from being asked
            _log.error("log_witness_failed", witness=witness.key.name, error=type(error).__name__, exc_info=error)

    async def _find_cosignature(self, witness: Witness, newest: StoredCheckpoint) -> NoteSignature | None:
        """Return the cosignature of a checkpoint; None without one. Stop the log if the witness proves another tree.

        Raises: DatabaseUnavailable.
        """
        try:
            cosignature = await self._ask_repeatedly(witness, newest)
        except WitnessAbsent as absent:
            if witness.url not in self._absent:
                self._absent.add(witness.url)
                _log.warning("log_witness_absent", witness=witness.key.name, reason=str(absent))
            return None
        self._absent.discard(witness.url)
        return cosignature

    async def _ask_repeatedly(self, witness: Witness, newest: StoredCheckpoint) -> NoteSignature | None:
        """Raises: WitnessAbsent; DatabaseUnavailable."""
        ctx, old_size = self._ctx, self._sizes.get(witness.url, 0)
        for _ in range(_ATTEMPTS):
            if old_size > newest.size:
                # It has cosigned a larger tree since: of ours, by a later request, or of another log with our key.
                if await self._is_beyond(old_size):
                    await self._look_for_conflict(witness)
                return None
            plan = plan_consistency(old_size, newest.size)
            async with ctx.db.transaction() as tx:
                proof = plan.read(await tree.find_tiles(tx, plan.tiles()))
            try:
                cosignature = await ctx.witnesses.add_checkpoint(witness, newest.note, old_size=old_size, proof=proof)
            except WitnessIsElsewhere as elsewhere:
                old_size = elsewhere.size
            except WitnessSawAnother:
                await self._look_for_conflict(witness)
                raise WitnessAbsent("says that it has seen another tree, without proof") from None
            else:
                self._sizes[witness.url] = newest.size
                return cosignature
        raise WitnessAbsent("names another size each time")

    async def _is_beyond(self, size: int) -> bool:
        """Return whether our tree is smaller than this."""
        async with self._ctx.db.transaction() as tx:
            log = await state.find(tx)
        return log is None or log.size < size

    async def _look_for_conflict(self, witness: Witness) -> None:
        """Stop the log if the witness shows a checkpoint that the log's key signed, and that is no part of our tree.

        Raises: WitnessAbsent; DatabaseUnavailable.
        """
        ctx = self._ctx
        async with ctx.db.transaction() as tx:
            log = await state.find(tx)
            keys = [key.verifier(log.origin) for key in await state.list_keys(tx)] if log is not None else []
        if log is None:
            return
        try:
            signed = verify_checkpoint(await ctx.witnesses.read_checkpoint(witness, log.origin), keys)
        except NotANote as error:
            raise WitnessAbsent(f"shows a checkpoint that {error}") from None
        async with ctx.db.transaction() as tx:
            # Locked, so that it is as large as anything that this or another process has signed.
            log = await state.lock(tx)
            if (
                log is None
                or log.origin != signed.checkpoint.origin
                or await _contains(tx, log.size, signed.checkpoint)
            ):
                return
            await state.update_stopped(tx, "witness_conflict")
        _log.error("log_witness_conflict", witness=witness.key.name, size=log.size, evidence=str(signed.note))

    async def _store(self, size: int, cosignature: NoteSignature) -> None:
        """Add a cosignature to a checkpoint, and publish it if that makes a quorum."""
        ctx = self._ctx
        async with ctx.db.transaction() as tx:
            log = await state.lock(tx)
            stored = await checkpoints.find(tx, size)
            if log is None or log.stopped_reason is not None or stored is None:
                return
            cosigned = stored.with_cosignature(cosignature)
            count = count_cosignatures(cosigned.parse(), [witness.key for witness in ctx.transparency.witnesses])
            published_at = stored.published_at
            if published_at is None and count >= ctx.transparency.quorum:
                published_at = ctx.clock.now()
                await checkpoints.delete_older(tx, than=size)
            await checkpoints.update_cosigned(tx, size, cosigned.cosignatures, published_at=published_at)

    async def _is_published(self, size: int) -> bool:
        async with self._ctx.db.transaction() as tx:
            stored = await checkpoints.find(tx, size)
        return stored is None or stored.published_at is not None

    async def _is_missing(self, size: int) -> bool:
        async with self._ctx.db.transaction() as tx:
            stored = await checkpoints.find(tx, size)
        return stored is not None and bool(stored.lacks(self._ctx.transparency.witnesses))


async def _contains(tx: Tx, size: int, seen: Checkpoint) -> bool:
    """Return whether our tree of `size` leaves begins with the one that somebody has seen."""
    if seen.size > size:
        return False
    if seen.size == 0:
        return seen.root == EMPTY_ROOT
    plan = plan_root(seen.size)
    return plan.read(await tree.find_tiles(tx, plan.tiles())) == [seen.root]
