"""The only source of randomness."""

import os
from typing import Final, Protocol

_POOL_BYTES: Final = 4096


class Entropy(Protocol):
    """A source of unpredictable bytes."""

    def take(self, size: int) -> bytes:
        """Return `size` fresh bytes, which are never returned again."""
        ...


class SystemEntropy:
    """The kernel's generator, read in blocks, so that one system call serves hundreds of request ids.

    A block is only in this process's memory, and each byte of it is returned once. Forked processes must not share it.
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
