"""The contexts of commands and of background jobs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.postgres.database import Database


class ReportTurns:
    """A limit on reports that are counted at a time. An organisation has one turn at most, so it never has them all."""

    def __init__(self, at_once: int) -> None:
        assert at_once > 1, "one organisation could keep the only turn for as long as it likes"
        self._turns: Final = asyncio.Semaphore(at_once)
        # Weak, so that only organisations that wait or count have a lock here.
        self._own: Final[WeakValueDictionary[str, asyncio.Lock]] = WeakValueDictionary()

    @contextlib.asynccontextmanager
    async def turn(self, organization_id: str) -> AsyncIterator[None]:
        """Wait for the organisation's turn, and hold it until the block ends."""
        own = self._own.setdefault(organization_id, asyncio.Lock())
        async with own, self._turns:
            yield


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of the running process that a command may use, wired once in `app`.

    A command that counts events takes one of the `report_turns`.
    """

    db: Database
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    report_turns: ReportTurns


@dataclass(frozen=True, slots=True)
class WorkContext:
    """The parts of a worker that a background job may use, wired once in `worker`; no key, as no job opens a secret."""

    db: Database
    clock: Clock
