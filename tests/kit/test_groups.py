"""Callers of one line are served in groups: in order, one group at a time, and each is told what concerns it."""

import asyncio
import contextvars
from collections.abc import Sequence

import pytest

from soundmark.kit.groups import Groups
from soundmark.kit.problems import DatabaseUnavailable, NotFound, Problem

_marked: contextvars.ContextVar[str] = contextvars.ContextVar("marked", default="nobody's")


class Desk:
    """Serves when it is let, and remembers whom together."""

    def __init__(self) -> None:
        self.served: list[list[str]] = []
        self.may_serve = asyncio.Event()
        self.is_serving = asyncio.Event()

    async def serve(self, wants: Sequence[str]) -> list[str | Problem]:
        self.served.append(list(wants))
        self.is_serving.set()
        await self.may_serve.wait()
        return [want.upper() for want in wants]


def groups(*, weight_max: int = 100, waiting_max: int = 100, patience_s: float = 60) -> Groups:
    return Groups(weight_max=weight_max, waiting_max=waiting_max, patience_s=patience_s)


async def behind(line: Groups, desk: Desk, *wants: str, weight: int = 1) -> list[asyncio.Task[str]]:
    """The tasks of `first`, who is being served, and of the others, who wait."""
    first = asyncio.create_task(line.join("key", "first", desk.serve))
    await desk.is_serving.wait()
    others = [asyncio.create_task(line.join("key", want, desk.serve, weight=weight)) for want in wants]
    await asyncio.sleep(0)
    return [first, *others]


async def test_who_comes_first_is_served_alone_and_who_came_meanwhile_together() -> None:
    line, desk = groups(), Desk()
    tasks = await behind(line, desk, "a", "b", "c")
    desk.may_serve.set()
    assert await asyncio.gather(*tasks) == ["FIRST", "A", "B", "C"]
    assert desk.served == [["first"], ["a", "b", "c"]]


async def test_a_line_that_was_served_begins_anew() -> None:
    line, desk = groups(), Desk()
    desk.may_serve.set()
    assert [await line.join("key", want, desk.serve) for want in "ab"] == ["A", "B"]
    assert desk.served == [["a"], ["b"]]


async def test_lines_do_not_wait_for_each_other() -> None:
    line, stuck, other = groups(), Desk(), Desk()
    tasks = await behind(line, stuck)
    other.may_serve.set()
    assert await line.join("another key", "a", other.serve) == "A"
    stuck.may_serve.set()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize(
    ("weight", "served"),
    [
        (3, [["a", "b", "c"], ["d"]]),
        (5, [["a", "b"], ["c", "d"]]),
        (6, [["a"], ["b"], ["c"], ["d"]]),
        (99, [["a"], ["b"], ["c"], ["d"]]),
    ],
)
async def test_a_group_weighs_no_more_than_it_may_and_has_at_least_one(weight: int, served: list[list[str]]) -> None:
    line, desk = groups(weight_max=10), Desk()
    tasks = await behind(line, desk, *"abcd", weight=weight)
    desk.may_serve.set()
    await asyncio.gather(*tasks)
    assert desk.served[1:] == served


async def test_each_gets_its_own_outcome() -> None:
    async def serve(wants: Sequence[str]) -> list[str | Problem]:
        return [NotFound(want) if want == "b" else want for want in wants]

    line = groups()
    answers = await asyncio.gather(*(line.join("key", want, serve) for want in "abc"), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["a", "b", "c"]
    assert isinstance(answers[1], NotFound)


async def test_a_problem_of_the_batch_is_raised_anew_for_each_and_nothing_is_repeated() -> None:
    asked: list[list[str]] = []

    async def serve(wants: Sequence[str]) -> list[str | Problem]:
        asked.append(list(wants))
        raise DatabaseUnavailable("Gone.")

    line = groups()
    told = await asyncio.gather(*(line.join("key", want, serve) for want in "abc"), return_exceptions=True)
    assert [repr(problem) for problem in told] == ["DatabaseUnavailable('Gone.')"] * 3
    assert len({id(problem) for problem in told}) == 3
    assert asked == [["a", "b", "c"]]


async def test_a_problem_of_one_request_goes_to_that_request() -> None:
    async def serve(wants: Sequence[str]) -> list[str | Problem]:
        if "b" in wants:
            raise ZeroDivisionError
        return list(wants)

    line = groups()
    answers = await asyncio.gather(*(line.join("key", want, serve) for want in "abc"), return_exceptions=True)
    assert [repr(answer) for answer in answers] == ["'a'", "ZeroDivisionError()", "'c'"]


async def test_a_caller_that_leaves_before_its_turn_is_not_served() -> None:
    line, desk = groups(), Desk()
    first, leaving, staying = await behind(line, desk, "leaving", "staying")
    leaving.cancel()
    desk.may_serve.set()
    assert await asyncio.gather(first, staying) == ["FIRST", "STAYING"]
    assert desk.served == [["first"], ["staying"]]


async def test_a_caller_that_leaves_while_it_is_served_harms_nobody() -> None:
    line, desk = groups(), Desk()
    first, other = await behind(line, desk, "other")
    first.cancel()
    desk.may_serve.set()
    assert await other == "OTHER"
    assert first.cancelled()


async def test_too_many_callers_are_refused() -> None:
    line, desk = groups(waiting_max=2), Desk()
    tasks = await behind(line, desk, "a", "b", "c")
    with pytest.raises(DatabaseUnavailable, match="Too much"):
        await tasks[-1]
    desk.may_serve.set()
    assert await asyncio.gather(*tasks[:-1]) == ["FIRST", "A", "B"]


async def test_a_caller_that_waited_too_long_is_refused_and_not_served() -> None:
    line, desk = groups(patience_s=-1), Desk()
    tasks = [asyncio.create_task(line.join("key", want, desk.serve)) for want in "ab"]
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(problem) for problem in told] == [DatabaseUnavailable] * 2
    assert desk.served == []


async def test_it_is_part_of_no_request() -> None:
    async def serve(wants: Sequence[str]) -> list[str | Problem]:
        return [_marked.get()] * len(wants)

    _marked.set("somebody's")
    assert await groups().join("key", "a", serve) == "nobody's"


async def test_closed_it_leaves_nobody_waiting() -> None:
    line, desk = groups(), Desk()
    tasks = await behind(line, desk, "a", "b")
    await line.aclose()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in ended] == [asyncio.CancelledError] * 3
