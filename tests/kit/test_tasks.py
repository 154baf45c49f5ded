"""How a task that runs beside the requests is ended."""

import asyncio

import pytest
from structlog.testing import capture_logs

from soundmark.kit import tasks
from soundmark.kit.tasks import cancel_and_wait


async def test_a_task_finishes_its_cleanup() -> None:
    lines: list[str] = []
    running = asyncio.Event()

    async def work() -> None:
        try:
            running.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            lines.append("closed")

    task = asyncio.create_task(work())
    await running.wait()
    await cancel_and_wait(task)
    assert (lines, task.cancelled()) == (["closed"], True)


async def test_a_task_that_never_began_ends() -> None:
    task = asyncio.create_task(asyncio.Event().wait())
    await cancel_and_wait(task)
    assert task.cancelled()


async def test_a_task_that_loses_a_cancellation_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example while it waits for a connection of the pool, and gets one at the same moment."""
    monkeypatch.setattr(tasks, "_AGAIN_S", 0.001)
    lost_count = 0

    async def work() -> None:
        nonlocal lost_count
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if lost_count == 2:
                    raise
                lost_count += 1

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await cancel_and_wait(task)
    assert (task.cancelled(), lost_count) == (True, 2)


async def test_a_finished_task_stays_as_it_was() -> None:
    task = asyncio.create_task(asyncio.sleep(0, result=7))
    await task
    with capture_logs() as logged:
        await cancel_and_wait(task)
    assert (task.result(), logged) == (7, [])


async def test_an_error_of_the_task_is_logged_and_does_not_reach_its_owner() -> None:
    async def work() -> None:
        raise ValueError("of its own")

    task = asyncio.create_task(work(), name="work")
    await asyncio.wait([task])
    with capture_logs() as logged:
        await cancel_and_wait(task)
    assert [(line["event"], line["task"], line["error"], line["log_level"]) for line in logged] == [
        ("task_failed", "work", "ValueError", "error")
    ]


async def test_our_own_cancellation_is_not_swallowed() -> None:
    """Otherwise, if the caller is stopped while a task takes its time to end, the stop would be lost."""
    leaving, release = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            leaving.set()
            await release.wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    ending = asyncio.create_task(cancel_and_wait(task))
    await leaving.wait()
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    release.set()
    await asyncio.wait([task])
    assert task.cancelled()
