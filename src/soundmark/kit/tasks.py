"""Background tasks: running one beside a block, and ending it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

import structlog

_AGAIN_S: Final = 1.0

_log: Final = structlog.get_logger()


@contextlib.asynccontextmanager
async def running(name: str, work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` beside the block as a task of this name; cancel it when the block ends."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        await cancel_and_wait(task)


async def wait_for_event(event: asyncio.Event, timeout_s: float) -> None:
    """Wait until `event` is set, for at most `timeout_s` seconds; 0 only lets other tasks have their turn."""
    if timeout_s <= 0:
        await asyncio.sleep(0)
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """Cancel `task`, and wait until it has ended, including its cleanup.

    An error of the task is logged and not raised, because the caller usually has more to stop. A cancellation of the
    caller is raised as always.
    """
    while not task.done():
        # Repeatedly, because a wait for a pooled connection loses a cancellation that arrives together with the
        # connection (psycopg_pool, WaitingClient.wait; asyncio.wait_for of Python 3.11).
        task.cancel()
        # Unlike `await task`, this raises CancelledError only if we are cancelled ourselves.
        await asyncio.wait([task], timeout=_AGAIN_S)
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("task_failed", task=task.get_name(), error=type(error).__name__, exc_info=error)
