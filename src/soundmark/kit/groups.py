"""One piece of work for many callers: what arrives while one group is served is the next group."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from soundmark.kit.problems import DatabaseUnavailable, Problem
from soundmark.kit.tasks import ended

W = TypeVar("W")
R = TypeVar("R")


@dataclass(slots=True)
class _Waiting:
    want: Any
    weight: int
    settled: asyncio.Future[Any]
    since_s: float

    def settle(self, outcome: object) -> None:
        """Tell whoever waits, unless he left."""
        if self.settled.done():
            return
        if isinstance(outcome, BaseException):
            self.settled.set_exception(outcome)
        else:
            self.settled.set_result(outcome)


class Groups:
    """Lines of callers, one for each key, each of which is served in groups by one transaction after the other.

    Nobody waits for company: who finds nobody before him is served at once. For work that only one can do at a time
    anyway, such as what begins with a lock: those who would wait for the lock wait here, and take it once for all.
    """

    def __init__(self, *, weight_max: int, waiting_max: int, patience_s: float) -> None:
        self._weight_max: Final = weight_max
        self._waiting_max: Final = waiting_max
        self._patience_s: Final = patience_s
        self._lines: Final[dict[Hashable, deque[_Waiting]]] = {}
        self._serving: Final[set[asyncio.Task[None]]] = set()

    async def join(
        self,
        key: Hashable,
        want: W,
        serve: Callable[[Sequence[W]], Awaitable[Sequence[R | Problem]]],
        *,
        weight: int = 1,
    ) -> R:
        """What `serve` answers to `want`, of which it gets several; the same function for everybody under a key.

        `serve` gives an outcome for each, in order, once they hold. Where it raises a Problem everybody is told that.
        Where it raises anything else nothing was done, and each is served once more alone, so that what is wrong with
        one is told to that one. A caller who leaves before his turn is not served.

        Raises: the Problem that `serve` gives; DatabaseUnavailable where too many wait, or for too long.
        """
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = deque()
            # In a context of its own: it serves many requests, and is part of none.
            task = asyncio.create_task(self._work(key, line, serve), name="groups", context=contextvars.Context())
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        if len(line) >= self._waiting_max:
            raise DatabaseUnavailable("Too much is waiting for the database.")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(want, weight, loop.create_future(), loop.time())
        line.append(waiting)
        answer: R = await waiting.settled
        return answer

    async def aclose(self) -> None:
        """Stop; whoever still waits is cancelled."""
        for task in list(self._serving):
            await ended(task)

    async def _work(
        self, key: Hashable, line: deque[_Waiting], serve: Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]
    ) -> None:
        group: list[_Waiting] = []
        try:
            while line:
                group = self._next(line)
                await self._serve(group, serve)
        finally:
            del self._lines[key]
            for waiting in (*group, *line):
                waiting.settled.cancel()

    def _next(self, line: deque[_Waiting]) -> list[_Waiting]:
        """Who is served next: in the order of arrival, as many as weigh no more than a group may, and at least one."""
        group: list[_Waiting] = []
        weight = 0
        oldest_s = asyncio.get_running_loop().time() - self._patience_s
        while line and (not group or weight + line[0].weight <= self._weight_max):
            waiting = line.popleft()
            if waiting.since_s < oldest_s:
                waiting.settle(DatabaseUnavailable("The database did not answer in time."))
            elif not waiting.settled.done():
                group.append(waiting)
                weight += waiting.weight
        return group

    async def _serve(
        self, group: Sequence[_Waiting], serve: Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]
    ) -> None:
        if not group:
            return
        try:
            outcomes = await serve([waiting.want for waiting in group])
        except Problem as problem:
            for waiting in group:
                waiting.settle(problem.anew())
        except Exception as error:  # noqa: BLE001 - whatever it was, it is told to the one whose it is
            if len(group) == 1:
                group[0].settle(error)
                return
            for waiting in group:
                await self._serve([waiting], serve)
        else:
            for waiting, outcome in zip(group, outcomes, strict=True):
                waiting.settle(outcome)
