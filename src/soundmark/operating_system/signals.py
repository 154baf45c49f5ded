"""Orderly ends on signals."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def until_signalled() -> Iterator[None]:
    """End the block at the first SIGINT, SIGTERM or SIGHUP; later signals do not disturb the cleanup."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "the caller runs in a task"
    signalled = False

    def end() -> None:
        nonlocal signalled
        if not signalled:
            signalled = True
            task.cancel()

    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # `nohup` makes us ignore SIGHUP, and that must stay so.
        if signum is not signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
            loop.add_signal_handler(signum, end)
    try:
        yield
    except asyncio.CancelledError:
        if not signalled:
            raise
