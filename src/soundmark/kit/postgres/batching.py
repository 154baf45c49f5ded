"""Batches: the items that arrive while one batch is processed are the next batch."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from soundmark.kit.http.responses.problems import DatabaseUnavailable, Problem
from soundmark.kit.postgres.sessions import STATEMENT_TIMEOUT_S
from soundmark.kit.tasks import cancel_and_wait

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class _Entry(Generic[T, R]):
    """An item in a queue, and the future of its outcome."""

    item: T
    size: int
    submitted_at_s: float
    outcome: asyncio.Future[R | Problem]

    def settle(self, outcome: R | Problem) -> None:
        """Give the caller the outcome, unless they have left."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)

    def fail(self, error: Exception) -> None:
        """Raise `error` in the caller, unless they have left."""
        if not self.outcome.done():
            self.outcome.set_exception(error)


class Batcher(Generic[T, R]):
    """A processor of items in batches, one batch of a queue after the other.

    No item waits for a batch to fill: in an idle queue, a batch starts as soon as the event loop has finished the turn
    in which its first item arrived. `process` gets the items in the order of arrival and returns one outcome for each.
    All of them were submitted before it began.

    If `process` raises a Problem, that is the outcome of the whole batch. If it raises anything else, it must have
    changed nothing: it then gets each item again, alone, so that an error reaches only the caller whose item causes it.
    """

    def __init__(
        self,
        process: Callable[[Sequence[T]], Awaitable[Sequence[R | Problem]]],
        *,
        size_max: int,
        waiting_max: int,
        patience_s: float = STATEMENT_TIMEOUT_S,
    ) -> None:
        self._process: Final = process
        self._size_max: Final = size_max
        self._waiting_max: Final = waiting_max
        self._patience_s: Final = patience_s
        self._queues: Final[dict[str, deque[_Entry[T, R]]]] = {}
        self._workers: Final[set[asyncio.Task[None]]] = set()

    def submit(self, item: T, *, queue: str = "", size: int = 1) -> asyncio.Future[R | Problem]:
        """Return the future of the item's outcome, which may be a Problem.

        Queues do not wait for each other. A batch has at least one item, and otherwise a total `size` of at most
        `size_max`. The outcome is DatabaseUnavailable if `waiting_max` items are in the queue already, or if the item
        waits for longer than `patience_s`. An item whose future is cancelled before its batch starts is dropped.
        """
        loop = asyncio.get_running_loop()
        entry: _Entry[T, R] = _Entry(item, size, loop.time(), loop.create_future())
        entries = self._queues.get(queue)
        if entries is None:
            self._start(queue, deque((entry,)))
        elif len(entries) < self._waiting_max:
            entries.append(entry)
        else:
            entry.settle(DatabaseUnavailable("Too many requests are waiting for the database."))
        return entry.outcome

    async def run(self, item: T, *, queue: str = "", size: int = 1) -> R:
        """Return the outcome of the item, as `submit` describes it.

        Raises: the Problem that is the outcome.
        """
        outcome = await self.submit(item, queue=queue, size=size)
        if isinstance(outcome, Problem):
            # The callers of a batch may share the problem, so remove the frames of those that raised it before.
            raise outcome.with_traceback(None)
        return outcome

    async def aclose(self) -> None:
        """Stop, and cancel the items that are still waiting."""
        for worker in list(self._workers):
            await cancel_and_wait(worker)

    def _start(self, queue: str, entries: deque[_Entry[T, R]]) -> None:
        self._queues[queue] = entries
        # In an empty context, because a worker serves many requests and belongs to none.
        worker = asyncio.create_task(self._work(queue, entries), name="batcher", context=contextvars.Context())
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    async def _work(self, queue: str, entries: deque[_Entry[T, R]]) -> None:
        """Process the entries of a queue until it is empty."""
        batch: list[_Entry[T, R]] = []
        try:
            # Everything that arrives in this turn of the event loop belongs to the first batch.
            await asyncio.sleep(0)
            while entries:
                batch = self._take_batch(entries)
                await self._settle(batch)
        finally:
            del self._queues[queue]
            for entry in (*batch, *entries):
                entry.outcome.cancel()

    def _take_batch(self, entries: deque[_Entry[T, R]]) -> list[_Entry[T, R]]:
        batch: list[_Entry[T, R]] = []
        size = 0
        oldest_s = asyncio.get_running_loop().time() - self._patience_s
        while entries and (not batch or size + entries[0].size <= self._size_max):
            entry = entries.popleft()
            if entry.submitted_at_s < oldest_s:
                entry.settle(DatabaseUnavailable("The database did not answer in time."))
            elif not entry.outcome.done():
                batch.append(entry)
                size += entry.size
        return batch

    async def _settle(self, batch: Sequence[_Entry[T, R]]) -> None:
        """Process a batch; every entry has an outcome or an error afterwards."""
        if not batch:
            return
        try:
            outcomes = await self._process([entry.item for entry in batch])
        except Problem as problem:
            for entry in batch:
                entry.settle(problem)
        except Exception as error:  # noqa: BLE001 - any error goes to the caller whose item caused it
            if len(batch) == 1:
                batch[0].fail(error)
                return
            for entry in batch:
                await self._settle([entry])
        else:
            for entry, outcome in zip(batch, outcomes, strict=True):
                entry.settle(outcome)
