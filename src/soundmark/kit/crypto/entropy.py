"""The one place where chance enters."""

import os
from typing import Final, Protocol

_POOL_BYTES: Final = 4096


class Entropy(Protocol):
    """A source of unpredictable bytes."""

    def take(self, size: int) -> bytes:
        """`size` fresh bytes, never given out twice."""
        ...


class SystemEntropy:
    """The kernel's generator, read in blocks: one system call serves hundreds of request ids.

    A block lives only in this process's memory and each byte of it is given out once. Not to be shared by forks.
    """

    def __init__(self) -> None:
        self._pool = b""
        self._used = 0

    def take(self, size: int) -> bytes:
        if size > _POOL_BYTES:
            return os.urandom(size)
        end = self._used + size
        if end > len(self._pool):
            self._pool = os.urandom(_POOL_BYTES)
            self._used, end = 0, size
        taken = self._pool[self._used : end]
        self._used = end
        return taken
