"""Tasks that run beside the requests: how they end."""

import asyncio
from typing import Any, Final

import structlog

_AGAIN_S: Final = 1.0

_log: Final = structlog.get_logger()


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """`task` is over, with everything it does on its way out: it is cancelled if it was still running.

    An error of its own is logged and not raised, since whoever stops it has more to stop. Our own cancellation is
    raised as always.
    """
    while not task.done():
        # More than once: a wait for a connection of the pool loses a cancellation that comes together with the
        # connection (psycopg_pool, WaitingClient.wait; asyncio.wait_for of Python 3.11).
        task.cancel()
        # Unlike `await task`, this raises CancelledError only where we are cancelled ourselves.
        await asyncio.wait([task], timeout=_AGAIN_S)
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("task_failed", task=task.get_name(), error=type(error).__name__, exc_info=error)
