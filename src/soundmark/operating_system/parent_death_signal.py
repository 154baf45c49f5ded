"""Children that do not outlive their parent."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def make_parent_death_signal(signum: signal.Signals) -> Callable[[], None] | None:
    """Return a `preexec_fn` with which a child gets `signum` when the thread that started it ends.

    That includes an end by `kill -9`. None if the kernel cannot do this. The child must have changed its user already,
    because a change of user resets the setting.
    """
    if _libc is None:
        return None
    parent = os.getpid()

    def request_signal() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signum))
        if os.getppid() != parent:
            # The parent has ended already, so the signal would never come.
            os._exit(1)

    return request_signal
