"""Children that do not outlive their parent."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def signalled_with_parent(signum: signal.Signals) -> Callable[[], None] | None:
    """What a child runs before its program, so that it gets `signum` when the thread that started it ends.

    However that thread ends, `kill -9` included. None where the kernel has no such thing. The child must have changed
    its user already, because that forgets the wish.
    """
    if _libc is None:
        return None
    parent = os.getpid()

    def ask() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signum))
        if os.getppid() != parent:
            # The parent was faster: nobody would ever send that signal.
            os._exit(1)

    return ask
