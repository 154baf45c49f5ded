"""Children that do not outlive their parent, and parents that adopt the children of their children."""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Final

# linux/prctl.h
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def make_parent_death_signal(signum: signal.Signals) -> Callable[[], None] | None:
    """Return a `preexec_fn` with which a child gets `signum` when the thread that started it ends.

    That includes an end by `kill -9`. None if the kernel cannot do this. The child must have changed its user already,
    because a change of user resets the setting.
    """
    if _libc is None:
        return None
    parent = os.getpid()
    return lambda: request_parent_death_signal(signum, parent)


def request_parent_death_signal(signum: int, parent: int) -> None:
    """Let this process get `signum` when `parent` ends; end it at once if that has ended already."""
    assert _libc is not None, "other kernels know no such signal"
    _libc.prctl(_PR_SET_PDEATHSIG, int(signum))
    if os.getppid() != parent:
        # The parent has ended already, so the signal would never come.
        os._exit(1)


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Be the parent of each process whose parent ends in the block, if it descends from us.

    Raises: OSError where the kernel cannot do this.
    """
    _set_adopting(is_adopting=True)
    try:
        yield
    finally:
        _set_adopting(is_adopting=False)


def _set_adopting(*, is_adopting: bool) -> None:
    if _libc is None or _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(is_adopting)):
        raise OSError("this kernel gives orphans to nobody but the first process")
