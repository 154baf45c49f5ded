"""Orderly ends on signals."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def until_signalled() -> Iterator[None]:
    """End the block at the first SIGINT, SIGTERM or SIGHUP; later ones do not disturb what the process still does."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "the caller runs in a task"
    signalled = False

    def end() -> None:
        nonlocal signalled
        if not signalled:
            signalled = True
            task.cancel()

    # `nohup` makes us ignore SIGHUP, and that must stay so.
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signums = [signal.SIGINT, signal.SIGTERM, *([] if is_nohup else [signal.SIGHUP])]
    for signum in signums:
        loop.add_signal_handler(signum, end)
    try:
        yield
    except asyncio.CancelledError:
        if not signalled:
            raise
        for signum in signums:
            # When the loop closes, it would restore a handler that ends the process with a traceback.
            loop.remove_signal_handler(signum)
            # No SIG_IGN, which processes that are started now would inherit.
            signal.signal(signum, lambda *_: None)
