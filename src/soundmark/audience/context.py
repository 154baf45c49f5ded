"""What a command may reach."""

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
    """How many count events at a time. An organisation takes one turn at most, so that it never takes all of them."""

    def __init__(self, at_once: int) -> None:
        assert at_once > 1, "the only turn would be anybody's for as long as he likes"
        self._turns: Final = asyncio.Semaphore(at_once)
        # Only of those who wait or count: nobody else holds his.
        self._own: Final[WeakValueDictionary[str, asyncio.Lock]] = WeakValueDictionary()

    @contextlib.asynccontextmanager
    async def turn(self, organization_id: str) -> AsyncIterator[None]:
        """It is the organisation's turn, until the block ends."""
        own = self._own.setdefault(organization_id, asyncio.Lock())
        async with own, self._turns:
            yield


@dataclass(frozen=True, slots=True)
class Context:
    """What a command may reach: the running process's parts, wired once in `app`.

    Who counts events takes one of the `report_turns`.
    """

    db: Database
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    report_turns: ReportTurns


@dataclass(frozen=True, slots=True)
class WorkContext:
    """What a background job may reach: the parts of a worker, wired once in `worker`. No key: no job opens a secret."""

    db: Database
    clock: Clock
