"""A batcher processes the items of a queue in order, one batch at a time, and each caller gets their own outcome."""

import asyncio
import contextvars
from collections.abc import Sequence

import pytest

from soundmark.kit.http.responses.problems import DatabaseUnavailable, NotFound, Problem
from soundmark.kit.postgres.batching import Batcher

_marked: contextvars.ContextVar[str] = contextvars.ContextVar("marked", default="nobody's")


class Stage:
    """A process function that finishes a batch when it is allowed to, and records its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.may_finish = asyncio.Event()
        self.has_begun = asyncio.Event()

    async def process(self, items: Sequence[str]) -> list[str | Problem]:
        self.batches.append(list(items))
        self.has_begun.set()
        await self.may_finish.wait()
        return [item.upper() for item in items]


def make_batcher(
    stage: Stage, *, size_max: int = 100, waiting_max: int = 100, patience_s: float = 60
) -> Batcher[str, str]:
    return Batcher(stage.process, size_max=size_max, waiting_max=waiting_max, patience_s=patience_s)


async def submit_behind_first(
    batcher: Batcher[str, str], stage: Stage, *items: str, size: int = 1
) -> list[asyncio.Task[str]]:
    """Submit items, and return the tasks of `first`, which is being processed, and of the others, which wait."""
    first = asyncio.create_task(batcher.run("first"))
    await stage.has_begun.wait()
    others = [asyncio.create_task(batcher.run(item, size=size)) for item in items]
    await asyncio.sleep(0)
    return [first, *others]


async def test_items_that_arrive_during_one_batch_are_the_next_batch() -> None:
    batcher = make_batcher(stage := Stage())
    tasks = await submit_behind_first(batcher, stage, "a", "b", "c")
    stage.may_finish.set()
    assert await asyncio.gather(*tasks) == ["FIRST", "A", "B", "C"]
    assert stage.batches == [["first"], ["a", "b", "c"]]


async def test_items_of_one_turn_of_the_event_loop_are_one_batch() -> None:
    """Also items that a task submits after the first item, in the same turn."""
    batcher = make_batcher(stage := Stage())
    stage.may_finish.set()
    assert await asyncio.gather(*(batcher.run(item) for item in "abc")) == ["A", "B", "C"]
    assert stage.batches == [["a", "b", "c"]]


async def test_an_empty_queue_starts_again() -> None:
    batcher = make_batcher(stage := Stage())
    stage.may_finish.set()
    assert [await batcher.run(item) for item in "ab"] == ["A", "B"]
    assert stage.batches == [["a"], ["b"]]


async def test_queues_do_not_wait_for_each_other() -> None:
    batcher = make_batcher(stage := Stage())
    tasks = await submit_behind_first(batcher, stage)
    stage.has_begun.clear()
    tasks.append(asyncio.create_task(batcher.run("a", queue="another")))
    await asyncio.wait_for(stage.has_begun.wait(), 10)
    assert stage.batches == [["first"], ["a"]]
    stage.may_finish.set()
    assert await asyncio.gather(*tasks) == ["FIRST", "A"]


async def test_a_batch_has_at_least_one_item_and_at_most_its_maximum(subtests: pytest.Subtests) -> None:
    for size, batches in [
        (3, [["a", "b", "c"], ["d"]]),
        (5, [["a", "b"], ["c", "d"]]),
        (6, [["a"], ["b"], ["c"], ["d"]]),
        (99, [["a"], ["b"], ["c"], ["d"]]),
    ]:
        with subtests.test(size=size, batches=batches):
            batcher = make_batcher(stage := Stage(), size_max=10)
            tasks = await submit_behind_first(batcher, stage, *"abcd", size=size)
            stage.may_finish.set()
            await asyncio.gather(*tasks)
            assert stage.batches[1:] == batches


async def test_each_caller_gets_their_own_outcome() -> None:
    async def process(items: Sequence[str]) -> list[str | Problem]:
        return [NotFound(item) if item == "b" else item for item in items]

    batcher: Batcher[str, str] = Batcher(process, size_max=10, waiting_max=10)
    outcomes = await asyncio.gather(*(batcher.run(item) for item in "abc"), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["a", "b", "c"]
    assert isinstance(outcomes[1], NotFound)
    assert isinstance(await batcher.submit("b"), NotFound), "where nothing is raised, it is the future's result"


async def test_a_problem_of_the_batch_goes_to_every_caller_and_nothing_is_repeated() -> None:
    batches: list[list[str]] = []

    async def process(items: Sequence[str]) -> list[str | Problem]:
        batches.append(list(items))
        raise DatabaseUnavailable("Gone.")

    batcher: Batcher[str, str] = Batcher(process, size_max=10, waiting_max=10)
    raised = await asyncio.gather(*(batcher.run(item) for item in "abc"), return_exceptions=True)
    assert [repr(problem) for problem in raised] == ["DatabaseUnavailable('Gone.')"] * 3
    assert batches == [["a", "b", "c"]]


async def test_a_problem_does_not_collect_the_frames_of_the_whole_batch() -> None:
    """Otherwise requests and what they hold would stay in memory."""

    async def process(_: Sequence[str]) -> list[str | Problem]:
        raise DatabaseUnavailable

    batcher: Batcher[str, str] = Batcher(process, size_max=10, waiting_max=10)
    frame_counts = []

    async def count_frames(item: str) -> None:
        try:
            await batcher.run(item)
        except DatabaseUnavailable as problem:
            frame, count = problem.__traceback__, 0
            while frame is not None:
                frame, count = frame.tb_next, count + 1
            frame_counts.append(count)

    await asyncio.gather(*(count_frames(item) for item in "abc"))
    assert frame_counts == [2, 2, 2]


async def test_an_error_reaches_only_the_caller_whose_item_causes_it() -> None:
    async def process(items: Sequence[str]) -> list[str | Problem]:
        if "b" in items:
            raise ZeroDivisionError
        return list(items)

    batcher: Batcher[str, str] = Batcher(process, size_max=10, waiting_max=10)
    outcomes = await asyncio.gather(*(batcher.run(item) for item in "abc"), return_exceptions=True)
    assert [repr(outcome) for outcome in outcomes] == ["'a'", "ZeroDivisionError()", "'c'"]


async def test_an_item_whose_caller_left_before_its_batch_is_dropped() -> None:
    batcher = make_batcher(stage := Stage())
    first, leaving, staying = await submit_behind_first(batcher, stage, "leaving", "staying")
    leaving.cancel()
    stage.may_finish.set()
    assert await asyncio.gather(first, staying) == ["FIRST", "STAYING"]
    assert stage.batches == [["first"], ["staying"]]


async def test_a_caller_who_leaves_during_their_batch_harms_nobody() -> None:
    batcher = make_batcher(stage := Stage())
    first, other = await submit_behind_first(batcher, stage, "other")
    first.cancel()
    stage.may_finish.set()
    assert await other == "OTHER"
    assert first.cancelled()


async def test_a_full_queue_refuses_more_at_once() -> None:
    batcher = make_batcher(stage := Stage(), waiting_max=2)
    tasks = await submit_behind_first(batcher, stage, "a", "b", "c")
    with pytest.raises(DatabaseUnavailable, match="Too many"):
        await tasks[-1]
    stage.may_finish.set()
    assert await asyncio.gather(*tasks[:-1]) == ["FIRST", "A", "B"]


async def test_an_item_that_waited_for_too_long_is_refused_and_not_processed() -> None:
    batcher = make_batcher(stage := Stage(), patience_s=-1)
    outcomes = await asyncio.gather(*(batcher.run(item) for item in "ab"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 2
    assert stage.batches == []


async def test_a_batch_is_part_of_no_request() -> None:
    async def process(items: Sequence[str]) -> list[str | Problem]:
        return [_marked.get()] * len(items)

    _marked.set("somebody's")
    assert await Batcher(process, size_max=1, waiting_max=1).run("a") == "nobody's"


async def test_a_closed_batcher_leaves_nobody_waiting() -> None:
    batcher = make_batcher(stage := Stage())
    tasks = await submit_behind_first(batcher, stage, "a", "b")
    await batcher.aclose()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 3
