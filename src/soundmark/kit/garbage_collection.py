"""How often Python looks for garbage that reference counting leaves."""

import gc
from typing import Final

_THRESHOLDS: Final = (50_000, 50, 50)


def collect_seldom() -> None:
    """Let the garbage collector run seldom, in this process, from now on.

    Most of what a process imports lives as long as it does. A collector that traverses it as often as Python's default
    takes a tenth of a component's start, and up to a fifth of its throughput.
    """
    gc.set_threshold(*_THRESHOLDS)
